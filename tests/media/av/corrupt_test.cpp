// Files that are cut off or damaged, through every way in: each ends in an error of ours or in
// frames, and damage that is tolerated is counted. No input takes much memory or time.
//
// What cannot be noticed: VP8, VP9, AV1, FFV1 without slice CRCs and PCM have no checksums. A
// flipped bit changes pixels or samples, and no decoder knows. MPEG-TS and MP3 do not state their
// length: what is cut off behind a whole packet is not missed.

#include <lade/error.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/load_video.hpp>
#include <lade/media/av/video.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/sync_wait.hpp>

#include "../../fuzz/sealed.hpp"
#include "../../support/resident_memory.hpp"
#include "../../support/seed.hpp"
#include "damaged_files.hpp"
#include "damaged_uses.hpp"
#include "demuxed_files.hpp"
#include "media_files.hpp"
#include "scripted_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <malloc.h>
#include <time.h>

namespace lade::media::corrupt_test {

// A video has 50 frames, and a decoder keeps 16 more at most, each of `most_pixels` with 6 bytes,
// of 4:4:4 with 16 bits: 104 MB. The rest is for the states of decoders and demuxers.
static constexpr std::size_t most_memory = std::size_t{128} << 20;

static const int rounds = corrupt_rounds(2);

// Of all threads of the process.
static double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A fragmented file that is cut between two fragments is a whole file.
static bool states_its_length(std::string_view file) {
  if (file == "h264-fragmented.mp4") return false;
  for (const char* end : {".mp4", ".m4a", ".mkv", ".webm", ".avi", ".wav", ".ogg", ".flac"})
    if (file.ends_with(end)) return true;
  return false;
}

class Corrupt : public testing::Test {
 protected:
  // No input keeps a processor busy for long, or takes much memory.
  template <class F>
  void measure(const F& call, std::string_view name) {
    constexpr double most_seconds = 5;
    const auto begin = cpu_seconds();
    const auto growth = test::growth_during(call);
    if (measures_memory_) {
      EXPECT_LE(growth, most_memory) << name;
    }
    EXPECT_LT(cpu_seconds() - begin, most_seconds) << name;
    EXPECT_LE(runs_.memory().stats().peak_bytes, most_memory) << name;
    EXPECT_EQ(runs_.memory().stats().used_bytes, 0U) << name;
  }

  void use(const buffer& file, std::string_view name, stream_kind kind) {
    measure([&] { use_everything(file, name, kind, runs_); }, name);
  }

  runtime runs_{{.threads = 1}};
  bool measures_memory_ = test::memory_can_be_measured() && mallopt(M_PERTURB, 0) == 1;
  std::uint64_t seed_ = test::new_seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, "LADE_SEED=" + std::to_string(seed_)};
  std::mt19937_64 random_{seed_};

  void cut(const media_recipe& recipe, const std::string& path, stream_kind kind) {
    const auto file = read_bytes(path);
    for (int i = 0; i < rounds; ++i) {
      const auto part = copy_of(file, random_() % file.size());
      use(part, path, kind);
      if (!states_its_length(recipe.file)) continue;
      EXPECT_FALSE(succeeds([&] { decode(demux(part, path, kind)); }))
          << recipe.file << " cut to " << part.size() << " bytes";
    }
  }

  void flip(const std::string& path, stream_kind kind) {
    const auto file = read_bytes(path);
    for (int i = 0; i < rounds; ++i) use(with_flips(file, random_), path, kind);
  }
};

TEST_F(Corrupt, VideosThatAreCutOffAreErrorsOfOurs) {
  for (const auto& each : video_recipes()) cut(each, video_path(each), stream_kind::video);
  for (const auto& each : untimed_recipes()) cut(each, video_path(each), stream_kind::video);
}

TEST_F(Corrupt, AudioThatIsCutOffIsAnErrorOfOurs) {
  for (const auto& each : audio_recipes()) cut(each, audio_path(each), stream_kind::audio);
}

TEST_F(Corrupt, FlippedBitsAreErrorsOfOursOrChangedFrames) {
  for (const auto& each : video_recipes()) flip(video_path(each), stream_kind::video);
  for (const auto& each : untimed_recipes()) flip(video_path(each), stream_kind::video);
  for (const auto& each : audio_recipes()) flip(audio_path(each), stream_kind::audio);
}

TEST_F(Corrupt, FilesOfTwoStreamsAreErrorsOfOursOrChangedFrames) {
  const auto both = video_and_audio();
  for (const auto kind : {stream_kind::video, stream_kind::audio}) {
    cut(both.recipe, both.path(), kind);
    flip(both.path(), kind);
  }
}

TEST_F(Corrupt, BitsThatFlipAfterAFileWasIndexedAreErrorsOfOursOrChangedFrames) {
  for (const auto recipes : {video_recipes(), untimed_recipes()})
    for (const auto& each : recipes) {
      const auto path = video_path(each);
      const auto file = read_bytes(path);
      const auto index = index_video(file, path);
      for (int i = 0; i < rounds; ++i) {
        const auto damaged = with_flips(file, random_);
        measure([&] { use_with_index(damaged, path, index, runs_); }, path);
      }
    }
}

// The checksum is right, as that of an index of another program.
TEST_F(Corrupt, FlippedBitsOfIndexesAreErrorsOfOursOrChangedFrames) {
  for (const auto recipes : {video_recipes(), untimed_recipes()})
    for (const auto& each : recipes) {
      const auto path = video_path(each);
      const auto file = read_bytes(path);
      const auto index = index_video(file, path).serialise();
      for (int i = 0; i < rounds; ++i) {
        const auto flipped = with_flips(index, random_);
        const auto sealed = test::sealed(reinterpret_cast<const std::uint8_t*>(flipped.data()),
                                         flipped.size(), "LADEVIDX");
        const auto use = [&] {
          use_with_index(file, path, packet_index::parse(sealed, path), runs_);
        };
        measure([&] { succeeds(use); }, path);
      }
    }
}

static std::string only_file_of(const std::string& directory) {
  const std::vector files(std::filesystem::directory_iterator(directory), {});
  EXPECT_EQ(files.size(), 1U);
  return files.at(0).path();
}

static std::string bytes_of(const tensor& clip) {
  return {reinterpret_cast<const char*>(clip.bytes()), clip.spec().bytes()};
}

TEST_F(Corrupt, KeptIndexesThatAreDamagedAreReplaced) {
  for (const char* recipe : {"h264.mp4", "vp9.webm", "mpeg2.ts", "h264-one-time.mkv"}) {
    const testing_support::temp_dir directory;
    const std::string indexes = directory / "indexes";
    const auto path = video_path(video_recipe(recipe));
    auto clip = small_clip(decode_small(damage_policy::refuse));
    clip.index_directory = indexes;
    const auto load = [&] { return bytes_of(sync_wait(runs_, load_clip(path, clip))); };
    const auto expected = load();
    const auto index = read_bytes(only_file_of(indexes));
    const auto replace = [&](const buffer& damaged) {
      directory.write(only_file_of(indexes), damaged.text());
      EXPECT_TRUE(load() == expected) << recipe;
      EXPECT_TRUE(read_bytes(only_file_of(indexes)).text() == index.text()) << recipe;
    };
    for (int i = 0; i < rounds; ++i) {
      replace(with_flips(index, random_));
      replace(copy_of(index, random_() % index.size()));
    }
  }
}

TEST_F(Corrupt, ToleratedDamageIsCounted) {
  const auto path = video_path(video_recipes()[0]);
  const auto file = read_bytes(path);
  auto damaged_file = copy_of(file, file.size());
  const auto index = index_video(file, path);
  const auto& packet = index.packets()[30];
  std::memset(damaged_file.data() + packet.position + 40, 0x55, packet.size - 40);
  EXPECT_THROW(decode(demux(damaged_file, path, stream_kind::video)), error);
  std::uint64_t damaged = 0;
  EXPECT_GE(decode_tolerantly(damaged_file, path, stream_kind::video, damaged), 40U);
  EXPECT_GE(damaged, 1U);
}

TEST_F(Corrupt, ToleratedCutsLeaveTheFramesBeforeThem) {
  for (const auto& each : video_recipes()) {
    if (std::string_view(each.file) != "h264-faststart.mp4") continue;
    const auto path = video_path(each);
    const auto file = read_bytes(path);
    std::uint64_t damaged = 0;
    const auto frames =
        decode_tolerantly(copy_of(file, file.size() / 2), path, stream_kind::video, damaged);
    EXPECT_GT(frames, 5U);
    EXPECT_LT(frames, 50U);
    demuxer opened(copy_of(file, file.size() / 2), path, {.damage = damage_policy::tolerate});
    (void)sync_wait(opened.read(0));
    EXPECT_GE(opened.damaged(), 1U);
  }
}

TEST_F(Corrupt, AudioThatIsCutOffIsDecodedAndCountedIfThatIsTolerated) {
  for (const auto& each : audio_recipes()) {
    if (!std::string_view(each.file).ends_with(".ogg") && std::string_view(each.file) != "aac.mkv")
      continue;
    const auto file = read_bytes(audio_path(each));
    const auto part =
        sample(std::string(each.file)).with_data(copy_of(file, file.size() - file.size() / 8));
    EXPECT_THROW(decode_audio()(part), error) << each;
    const decode_audio tolerant({.damage = damage_policy::tolerate});
    EXPECT_GT(tolerant(part).spec().elements(), 10'000) << each;
    EXPECT_GE(tolerant.damaged(), 1U) << each;
  }
}

static std::size_t find_box(const buffer& file, std::string_view type) {
  const auto at = file.text().find(type);
  if (at == std::string_view::npos) throw std::runtime_error("no box " + std::string(type));
  return at + type.size();
}

static void set_big_endian(buffer& file, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i)
    file.data()[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

static std::uint32_t big_endian(const buffer& file, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | std::to_integer<std::uint32_t>(file.data()[at + i]);
  return value;
}

// A video of MP4 with free space behind it.
static buffer with_free_boxes(const buffer& file, std::size_t boxes, std::uint32_t box_bytes) {
  buffer longer(file.size() + boxes * box_bytes);
  std::fill_n(longer.data(), longer.size(), std::byte{});
  std::memcpy(longer.data(), file.data(), file.size());
  for (std::size_t i = 0; i < boxes; ++i) {
    const auto at = file.size() + i * box_bytes;
    set_big_endian(longer, at, box_bytes);
    std::memcpy(longer.data() + at + 4, "free", 4);
  }
  return longer;
}

// A small file whose packets share their bytes: 1,500 of 60,000 bytes. Two streams alternate, so
// that the file states where each packet begins.
static buffer with_shared_bytes() {
  const auto path = media_directory / "many.mp4";
  media_files::run("-f lavfi -i color=s=16x16:r=1000 -t 1.5 -map 0 -map 0 -c:v mpeg4 " +
                   std::string(path));
  auto file = with_free_boxes(read_bytes(path), 1, 100'000);
  const auto sizes = find_box(file, "stsz") + 4;  // behind version and flags
  const auto count = big_endian(file, sizes + 4);
  for (std::uint32_t i = 0; i < count; ++i) set_big_endian(file, sizes + 8 + 4 * i, 60'000);
  return file;
}

template <class F>
static error refusal_of(const F& call) {
  try {
    call();
  } catch (const error& refused) {
    return refused;
  }
  throw std::runtime_error("it is not refused");
}

TEST_F(Corrupt, PacketsOfManyTimesTheBytesOfTheirFileAreRefusedByName) {
  const auto file = with_shared_bytes();
  const auto check = [](const error& refused) {
    EXPECT_EQ(refused.code(), errc::limit_exceeded) << refused.what();
    EXPECT_NE(std::string_view(refused.what()).find("many.mp4"), std::string_view::npos);
  };
  check(refusal_of([&] { demux(file, "many.mp4", stream_kind::video); }));
  check(refusal_of([&] { video(file, "many.mp4"); }));
  check(refusal_of([&] { sync_wait(demuxer(file, "many.mp4").read(0)); }));
  check(refusal_of([&] {
    const auto read_all = [](demuxer from) -> task<> {
      auto elements = from.stream(0, {.packets = 1});
      while (const auto* element = co_await elements.next()) (void)element;
    };
    sync_wait(read_all(demuxer(file, "many.mp4")));
  }));
}

TEST_F(Corrupt, ManySmallBoxesAreReadInFewPieces) {
  constexpr std::size_t boxes = 50'000;
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto file = with_free_boxes(read_bytes(path), boxes, 8);
  const auto from = std::make_shared<test::scripted_reader>(file);
  runtime where({.threads = 1});
  EXPECT_EQ(sync_wait(where, video::open(from)).size(), index_video(file, path).size());
  EXPECT_LT(from->reads(), 200);
}

}  // namespace lade::media::corrupt_test
