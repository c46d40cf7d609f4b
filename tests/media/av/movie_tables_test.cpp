// MP4 files whose tables and edit lists are changed, and movies that are made by hand.

#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/load_video.hpp>
#include <lade/media/av/video.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/sync_wait.hpp>

#include "../../support/resident_memory.hpp"
#include "media_files.hpp"
#include "scripted_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media::movie_tables_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

static std::string number(std::uint64_t value, int bytes = 4) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i)
    text += i < 8 ? static_cast<char>(value >> (8 * i) & 0xff) : '\0';
  return text;
}

static std::size_t number_in(std::string_view text, std::size_t at) {
  std::size_t value = 0;
  for (const char each : text.substr(at, 4)) value = value << 8 | static_cast<unsigned char>(each);
  return value;
}

static std::string box(std::string_view type, const std::string& content) {
  return number(8 + content.size()) + std::string(type) + content;
}

static std::string full_box(std::string_view type, const std::string& content) {
  return box(type, number(0) + content);
}

// Boxes in which the one at the end of a path has another content.
static std::string replaced(std::string_view boxes, std::span<const std::string_view> path,
                            const std::string& content) {
  std::string result;
  for (std::size_t at = 0; at < boxes.size();) {
    const auto bytes = number_in(boxes, at);
    const auto each = boxes.substr(at, bytes);
    at += bytes;
    if (each.substr(4, 4) != path.front())
      result += each;
    else if (path.size() == 1)
      result += box(path.front(), content);
    else
      result += box(path.front(), replaced(each.substr(8), path.subspan(1), content));
  }
  return result;
}

static std::string text_of(const buffer& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

static buffer bytes_of(std::string_view text) {
  buffer file(text.size());
  std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(file.data()));
  return file;
}

// In milliseconds, and in units of the track; -1 shows nothing.
struct edit {
  std::uint32_t duration = 0;
  std::int32_t media_time = 0;
};

static std::string edit_list(const std::vector<edit>& edits) {
  auto list = number(0) + number(edits.size());
  for (const auto& each : edits)
    list += number(each.duration) + number(static_cast<std::uint32_t>(each.media_time)) +
            number(0x10000);
  return list;
}

// A file whose movie box is its last with this edit list for its one track.
static buffer with_edits(const std::string& path, const std::vector<edit>& edits) {
  constexpr std::string_view at[] = {"moov", "trak", "edts", "elst"};
  return bytes_of(replaced(text_of(read_bytes(path)), at, edit_list(edits)));
}

static std::string h264_path() {
  return video_path(
      {"edited.mp4", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p -video_track_timescale 1000"});
}

static std::vector<frame_digest> digests_of(const std::vector<frame>& frames) {
  std::vector<frame_digest> digests;
  for (const auto& each : frames) digests.push_back(digest_of(each));
  return digests;
}

static task<packets> read_slowly(buffer file, time_window window) {
  auto opened = co_await demuxer::open(std::make_shared<test::scripted_reader>(std::move(file)));
  co_return co_await opened.read(0, window);
}

// Parts that repeat, go back, skip, adjoin, or begin late.
static std::vector<std::vector<edit>> several_edits(std::int32_t second) {
  return {{{800, 80}, {800, 80}},
          {{700, second}, {700, 80}},
          {{400, 80}, {400, second + 200}},
          {{520, 80}, {520, 600}, {400, 1120}},
          {{500, -1}, {400, second}, {120, -1}, {440, 80}}};
}

TEST(MovieTables, AWindowOfVideoWithSeveralEditsHasTheFramesOfTheWhole) {
  runtime run({.threads = 1});
  for (const auto& edits : several_edits(1000)) {
    const auto file = with_edits(h264_path(), edits);
    const auto whole = decode(demux(file, "edited.mp4", stream_kind::video));
    ASSERT_GT(whole.size(), 10U);
    for (int i = 0; i < 10; ++i) {
      const time_window window{.begin = rational(i, 5), .end = rational(i + 1, 5)};
      std::vector<frame_digest> expected;
      for (const auto& each : whole)
        if (window.contains(*each.time())) expected.push_back(digest_of(each));
      const auto here = decode(demux(file, "edited.mp4", stream_kind::video, window));
      EXPECT_EQ(digests_of(here), expected) << i;
      const auto slow = decode(sync_wait(run, read_slowly(file, window)));
      EXPECT_EQ(digests_of(slow), expected) << i;
    }
    const video indexed(file, "edited.mp4");
    EXPECT_EQ(indexed.size(), static_cast<std::int64_t>(whole.size()));
  }
}

// Above 1 MiB: of smaller files, a reader is read to its end.
static std::string long_audio_path(const std::string& name, const std::string& codec) {
  const auto path = media_directory / name;
  if (!std::filesystem::exists(path))
    media_files::run("-f lavfi -i anoisesrc=r=44100:d=24:a=0.3:seed=5 -ac 2 -c:a " + codec + " " +
                     path);
  return path;
}

static std::vector<float> samples_in(const tensor& of, std::int64_t from, std::int64_t to) {
  std::vector<float> all;
  for (std::int64_t c = 0; c < of.shape()[0]; ++c) {
    const auto* row = of.data<float>() + c * of.shape()[1];
    all.insert(all.end(), row + from, row + to);
  }
  return all;
}

static void expect_slices(const buffer& file) {
  runtime run({.threads = 1});
  const auto in = sample("edited.m4a").with_data(file);
  const auto whole = decode_audio()(in);
  const auto count = whole.shape()[1];
  for (int i = 0; i < 12; ++i) {
    const auto from = count * i / 12;
    const auto to = std::min(count, from + count / 9);
    const decode_audio part({.offset = static_cast<double>(from) / 44100,
                             .duration = static_cast<double>(to - from) / 44100});
    const auto expected = samples_in(whole, from, to);
    EXPECT_EQ(samples_in(part(in), 0, to - from), expected) << from;
    const auto slow = sync_wait(run, part.read(std::make_shared<test::scripted_reader>(file)));
    EXPECT_EQ(samples_in(slow, 0, to - from), expected) << from;
  }
}

TEST(MovieTables, AWindowOfAudioWithSeveralEditsIsASliceOfTheWhole) {
  const auto aac = long_audio_path("edited-aac.m4a", "aac -aac_pns 0 -b:a 500k");
  const auto alac = long_audio_path("edited-alac.m4a", "alac");
  for (const auto& path : {aac, alac}) {
    SCOPED_TRACE(path);
    expect_slices(with_edits(path, {{9000, 44100}, {9000, 44100}}));
    expect_slices(with_edits(path, {{6000, 441000}, {7000, 5000}}));
    expect_slices(with_edits(path, {{500, -1}, {5000, 1024}, {5000, 1024 + 220500}}));
  }
}

TEST(MovieTables, ConsecutiveWindowsOfSeveralEditsHaveAllSamplesOnce) {
  const auto path = long_audio_path("edited-aac.m4a", "aac -aac_pns 0 -b:a 500k");
  const auto file = with_edits(path, {{4000, 441000}, {4000, 44100}});
  const auto samples = [&](const time_window& window) {
    std::int64_t count = 0;
    for (const auto& each : decode(demux(file, path, stream_kind::audio, window)))
      count += each.samples();
    return count;
  };
  std::int64_t total = samples({.end = 1});
  for (int i = 1; i < 9; ++i) total += samples({.begin = i, .end = i + 1});
  EXPECT_EQ(total, samples({}));
}

// A movie of one track, of pictures of 64 x 64 or of sound, whose samples are one byte each.
struct made_movie {
  std::string handler = "vide";
  std::string stts;
  std::string stsc;
  std::string stsz;
  std::string edits;
  std::size_t media_bytes = 64;
  std::string extends;    // content of mvex
  std::string fragments;  // behind the movie

  buffer file() const {
    const auto matrix =
        number(0x10000) + number(0, 12) + number(0x10000) + number(0, 12) + number(0x40000000);
    const auto movie_header =
        full_box("mvhd", number(0, 8) + number(1000) + number(100) + number(0x10000) +
                             number(0x100, 2) + number(0, 10) + matrix + number(0, 24) + number(2));
    const auto track_header =
        full_box("tkhd", number(0, 8) + number(1) + number(0) + number(100) + number(0, 16) +
                             matrix + number(64 << 16) + number(64 << 16));
    const auto media_header = full_box("mdhd", number(0, 8) + number(30) + number(100) + number(0));
    const auto handled = full_box("hdlr", number(0) + handler + number(0, 12) + number(0, 1));
    const auto picture =
        box("mp4v", number(1, 8) + number(0, 16) + number(64, 2) + number(64, 2) + number(0, 50));
    const auto sound = box("twos", number(1, 8) + number(0, 8) + number(1, 2) + number(16, 2) +
                                       number(0) + number(8000 << 16));
    const auto described = full_box("stsd", number(1) + (handler == "vide" ? picture : sound));
    const auto chunks = fragments.empty() ? number(1) + number(8) : number(0);
    const auto tables = box("stbl", described + full_box("stts", stts) + full_box("stsc", stsc) +
                                        full_box("stsz", stsz) + full_box("stco", chunks));
    const auto media = box("mdia", media_header + handled + box("minf", tables));
    const auto edited = edits.empty() ? edits : box("edts", box("elst", edits));
    return bytes_of(box("ftyp", "isom" + number(512) + "isom") +
                    box("moov", movie_header + box("trak", track_header + edited + media) +
                                    (extends.empty() ? extends : box("mvex", extends))) +
                    fragments + box("mdat", std::string(media_bytes, '\0')));
  }
};

static made_movie movie_of(std::uint32_t samples) {
  return {.stts = number(1) + number(samples) + number(1),
          .stsc = number(1) + number(1) + number(samples) + number(1),
          .stsz = number(1) + number(samples),
          .edits = {},
          .extends = {},
          .fragments = {}};
}

// A movie whose samples are in a fragment that states their size and duration once.
static made_movie fragmented_movie_of(std::uint32_t samples) {
  auto made = movie_of(0);
  made.stts = made.stsc = number(0);
  made.stsz = number(0) + number(0);
  made.extends = full_box("trex", number(1) + number(1) + number(1) + number(1) + number(0));
  made.fragments =
      box("moof", full_box("mfhd", number(1)) +
                      box("traf", full_box("tfhd", number(1)) + full_box("trun", number(samples))));
  return made;
}

static void expect_too_much(const buffer& file, std::string_view why) {
  runtime run({.threads = 1});
  const auto open = [&] { demuxer(file, "small.mp4"); };
  const auto slow = [&] { sync_wait(run, read_slowly(file, {})); };
  const auto index = [&] { video(file, "small.mp4"); };
  const auto refused = [&] {
    EXPECT_THAT(open, ThrowsMessage<error>(HasSubstr("open small.mp4: ")));
    EXPECT_THAT(open, ThrowsMessage<error>(HasSubstr(why)));
    EXPECT_THAT(slow, ThrowsMessage<error>(HasSubstr(why)));
    EXPECT_THAT(index, ThrowsMessage<error>(HasSubstr(why)));
  };
  const bool measures = test::memory_can_be_measured();
  const auto growth = test::growth_during(refused);
  if (measures) {
    EXPECT_LE(growth, std::size_t{16} << 20);
  }
  try {
    open();
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::limit_exceeded);
  }
}

TEST(MovieTables, MoreSamplesThanAFileCanHoldAreRefusedBeforeTheyTakeMemory) {
  EXPECT_EQ(demux(movie_of(64).file(), "small.mp4", stream_kind::video).size(), 64U);
  expect_too_much(movie_of(80'000'000).file(), "80000000 samples in a file of ");
  auto sound = movie_of(64);
  sound.handler = "soun";
  EXPECT_EQ(demux(sound.file(), "small.mp4", stream_kind::audio).size(), 1U);
  sound.stsc = number(1) + number(1) + number(0x7fffffff) + number(1);
  expect_too_much(sound.file(), " samples in a file of ");
}

TEST(MovieTables, MoreSamplesOfAFragmentThanAFileCanHoldAreRefused) {
  EXPECT_EQ(demux(fragmented_movie_of(50).file(), "small.mp4", stream_kind::video).size(), 50U);
  expect_too_much(fragmented_movie_of(20'000'000).file(), "20000000 samples in a file of ");
}

TEST(MovieTables, EditsThatRepeatMoreThanAFileCanHoldAreRefused) {
  auto repeated = movie_of(3000);
  repeated.media_bytes = 3000;
  repeated.edits = edit_list(std::vector<edit>(3000, {100'000, 0}));
  expect_too_much(repeated.file(), " samples in a file of ");
  repeated.edits = edit_list(std::vector<edit>(20'000, {1, -1}));
  expect_too_much(repeated.file(), "20000 edits");
}

TEST(MovieTables, ManyEditsOfFewSamplesAreRead) {
  std::vector<edit> edits;
  for (int i = 0; i < 40; ++i) edits.push_back({40, 80 + 40 * i});
  const auto file = with_edits(h264_path(), edits);
  EXPECT_EQ(decode(demux(file, "edited.mp4", stream_kind::video)).size(), 40U);
}

// The bytes of a file up to some in its media data, which then extends to the end of the file.
static std::string cut_in_media(std::string file, std::size_t bytes) {
  const auto media = file.find("mdat");
  file.replace(media - 4, 4, number(0));
  return file.substr(0, bytes);
}

static void expect_missing(const buffer& file, std::string_view why) {
  runtime run({.threads = 1});
  EXPECT_THAT([&] { demuxer(file, "cut.mp4"); }, ThrowsMessage<error>(HasSubstr(why)));
  EXPECT_THAT([&] { video(file, "cut.mp4"); }, ThrowsMessage<error>(HasSubstr(why)));
  EXPECT_THAT([&] { sync_wait(run, read_slowly(file, {})); }, ThrowsMessage<error>(HasSubstr(why)));
  const demuxer tolerant(file, "cut.mp4", {.damage = damage_policy::tolerate});
  EXPECT_EQ(tolerant.damaged(), 1U);
}

TEST(MovieTables, AFileThatEndsBeforeItsSamplesIsRefused) {
  const auto file = text_of(read_bytes(video_path(video_recipe("h264-faststart.mp4"))));
  const auto whole = cut_in_media(file, file.size());
  EXPECT_EQ(demux(bytes_of(whole), "whole.mp4", stream_kind::video).size(), 50U);
  const auto why = "its tables list samples up to byte " + std::to_string(file.size()) + " of ";
  for (const auto cut : {std::size_t{1}, file.size() / 4})
    expect_missing(bytes_of(cut_in_media(file, file.size() - cut)), why);
}

TEST(MovieTables, AFileWhoseLastTablesListSamplesBehindItsEndIsRefused) {
  const auto file = text_of(read_bytes(video_path(video_recipe("h264.mp4"))));
  const auto media = file.find("mdat");
  const auto left = number_in(file, media - 4) / 4;
  const auto movie = file.substr(media - 4 + number_in(file, media - 4));
  const auto cut = file.substr(0, media - 4) + number(left) + file.substr(media, left - 4) + movie;
  expect_missing(bytes_of(cut), "its tables list samples up to byte ");
}

}  // namespace lade::media::movie_tables_test
