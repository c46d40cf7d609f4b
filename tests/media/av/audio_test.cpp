#include "../../support/mounted_store.hpp"
#include "../../support/seed.hpp"

#include <lade/batch.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace lade::media::audio_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

static const media_recipe speech_wav{"speech.wav", "-ac 1 -ar 16000 -c:a pcm_s16le"};
static const media_recipe speech_flac{"speech.flac", "-ac 1 -ar 16000 -c:a flac"};

static sample sample_of(const std::string& path) {
  return sample(path).with_data(read_bytes(path));
}

static tensor audio_of_file(const std::string& path, const audio_options& options,
                            random draw = {}) {
  return decode_audio(options)(sample_of(path), draw);
}

template <class T>
static std::vector<T> elements(const tensor& from) {
  const auto* first = from.data<T>();
  return {first, first + from.spec().elements()};
}

static void expect_refused(const std::string& path, const audio_options& options,
                           const std::string& why) {
  EXPECT_THAT([&] { audio_of_file(path, options); }, ThrowsMessage<error>(HasSubstr(path)));
  EXPECT_THAT([&] { audio_of_file(path, options); }, ThrowsMessage<error>(HasSubstr(why)));
}

static std::vector<media_recipe> all_recipes() {
  const auto listed = audio_recipes();
  std::vector<media_recipe> recipes(listed.begin(), listed.end());
  for (const auto* encoding : {"u8", "s16le", "s24le", "s32le", "f32le", "f64le", "alaw"}) {
    static std::vector<std::unique_ptr<std::string>> texts;
    for (const int channels : {1, 2, 6}) {
      texts.push_back(std::make_unique<std::string>(std::string(encoding) + "-" +
                                                    std::to_string(channels) + ".wav"));
      const auto* file = texts.back()->c_str();
      texts.push_back(std::make_unique<std::string>("-ac " + std::to_string(channels) +
                                                    " -ar 22050 -c:a pcm_" + encoding));
      recipes.push_back({file, texts.back()->c_str()});
    }
  }
  return recipes;
}

class AudioOfFile : public testing::TestWithParam<media_recipe> {};

TEST_P(AudioOfFile, EqualsTheFfmpegProgramBitForBit) {
  const auto path = audio_path(GetParam());
  const auto interleaved = audio_layout::interleaved;
  EXPECT_EQ(elements<float>(audio_of_file(path, {.layout = interleaved})),
            converted_by_ffmpeg<float>(path, ""));
  EXPECT_EQ(elements<float>(audio_of_file(path, {.sample_rate = 16'000, .channels = 1})),
            converted_by_ffmpeg<float>(path, "-ar 16000 -ac 1"));
  EXPECT_EQ(elements<float>(audio_of_file(path, {.channels = 2, .layout = interleaved})),
            converted_by_ffmpeg<float>(path, "-ac 2"));
  EXPECT_EQ(elements<std::int16_t>(
                audio_of_file(path, {.layout = interleaved, .type = element_type::i16})),
            converted_by_ffmpeg<std::int16_t>(path, ""));
}

TEST_P(AudioOfFile, OfAFixedLengthIsItsBeginning) {
  const auto path = audio_path(GetParam());
  const auto whole = elements<float>(audio_of_file(path, {.sample_rate = 8'000, .channels = 1}));
  for (const std::int64_t samples : {1, 4'000, 12'345}) {
    const auto part =
        audio_of_file(path, {.sample_rate = 8'000, .channels = 1, .samples = samples});
    EXPECT_EQ(part.shape(), (dimensions{1, samples}));
    EXPECT_EQ(elements<float>(part), std::vector(whole.begin(), whole.begin() + samples));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, AudioOfFile, testing::ValuesIn(all_recipes()), name_of_recipe);

TEST(DecodeAudio, AWindowEqualsAtrimOfTheFfmpegProgram) {
  for (const auto& recipe : {speech_wav, speech_flac}) {
    const auto path = audio_path(recipe);
    const auto part = audio_of_file(path, {.sample_rate = 24'000, .offset = 0.25, .duration = 0.5});
    EXPECT_EQ(elements<float>(part),
              converted_by_ffmpeg<float>(path, "-af atrim=start=0.25:end=0.75 -ar 24000"))
        << path;
  }
}

TEST(DecodeAudio, ARandomWindowIsAPartOfTheFileThatDependsOnTheDraw) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  for (const auto& recipe : {speech_wav, speech_flac}) {
    const auto path = audio_path(recipe);
    const auto whole = elements<float>(audio_of_file(path, {}));
    const decode_audio decode({.channels = 1, .random_offset = true, .samples = 8'000});
    EXPECT_TRUE(decode.is_random());
    std::vector<std::vector<float>> parts;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto part = elements<float>(decode(sample_of(path), random(seed, i)));
      EXPECT_NE(std::search(whole.begin(), whole.end(), part.begin(), part.end()), whole.end());
      EXPECT_EQ(part, elements<float>(decode(sample_of(path), random(seed, i))));
      parts.push_back(part);
    }
    EXPECT_FALSE(parts[0] == parts[1] && parts[1] == parts[2] && parts[2] == parts[3]);
  }
}

TEST(DecodeAudio, ShorterAudioIsPaddedWithZerosOrRefused) {
  const auto path = audio_path(speech_wav);
  const auto whole = elements<float>(audio_of_file(path, {}));
  ASSERT_EQ(whole.size(), 32'000U);
  for (const auto fit : {audio_fit::pad_or_crop, audio_fit::pad}) {
    auto expected = whole;
    expected.resize(40'000);
    EXPECT_EQ(elements<float>(audio_of_file(path, {.channels = 1, .samples = 40'000, .fit = fit})),
              expected);
  }
  for (const auto fit : {audio_fit::crop, audio_fit::exact})
    expect_refused(path, {.channels = 1, .samples = 40'000, .fit = fit},
                   "it has 32000 samples, fewer than 40000");
}

TEST(DecodeAudio, LongerAudioIsCroppedOrRefused) {
  const auto path = audio_path(speech_wav);
  for (const auto fit : {audio_fit::pad, audio_fit::exact})
    expect_refused(path, {.channels = 1, .samples = 31'999, .fit = fit},
                   "it has 32000 samples, more than 31999");
  for (const auto fit : {audio_fit::crop, audio_fit::exact, audio_fit::pad})
    EXPECT_EQ(audio_of_file(path, {.channels = 1, .samples = 32'000, .fit = fit}).shape(),
              (dimensions{1, 32'000}));
}

TEST(DecodeAudio, ChannelsPaddedOneByOneLieBehindEachOther) {
  const auto path = audio_path(audio_recipes()[0]);
  const auto whole = audio_of_file(path, {});
  const auto there = whole.shape()[1];
  const auto wanted = there + 100;
  for (const auto fit : {audio_fit::pad_or_crop, audio_fit::pad}) {
    const auto padded = audio_of_file(path, {.channels = 2, .samples = wanted, .fit = fit});
    for (std::int64_t c = 0; c < 2; ++c) {
      const auto* row = padded.data<float>() + c * wanted;
      EXPECT_TRUE(std::equal(row, row + there, whole.data<float>() + c * there));
      EXPECT_TRUE(std::all_of(row + there, row + wanted, [](float each) { return each == 0; }));
    }
  }
}

// The value of a binary16, and of the upper half of a binary32.
static float value_of_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float fraction = static_cast<float>(bits & 1023) / 1024;
  const float magnitude =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}
static float value_of_bf16(std::uint16_t bits) {
  const auto all = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &all, sizeof value);
  return value;
}

TEST(DecodeAudio, HalvesAreTheNearestOnes) {
  const auto path = audio_path(audio_recipes()[0]);
  const auto floats = elements<float>(audio_of_file(path, {}));
  const auto f16 = elements<std::uint16_t>(audio_of_file(path, {.type = element_type::f16}));
  const auto bf16 = elements<std::uint16_t>(audio_of_file(path, {.type = element_type::bf16}));
  ASSERT_EQ(f16.size(), floats.size());
  ASSERT_EQ(bf16.size(), floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const float value = std::abs(floats[i]);
    ASSERT_LE(std::abs(value_of_f16(f16[i]) - floats[i]), std::max(value * 0x1p-11F, 0x1p-25F));
    ASSERT_LE(std::abs(value_of_bf16(bf16[i]) - floats[i]), value * 0x1p-8F);
  }
}

TEST(DecodeAudio, WritesTheSlotsOfABatch) {
  const auto path = audio_path(speech_flac);
  std::vector<sample> samples;
  for (std::int64_t i = 0; i < 5; ++i) samples.emplace_back(path, i);
  runtime run({.threads = 2});
  const auto batches = from(samples) | map(io::read) |
                       batch_into(decode_audio({.channels = 1, .samples = 20'000}), {.size = 4});
  std::vector<std::int64_t> sizes;
  const auto expected = audio_of_file(path, {.channels = 1, .samples = 20'000});
  for (auto& batch : run.run(batches)) {
    sizes.push_back(batch.tensor().shape()[0]);
    EXPECT_EQ(batch.tensor().spec(), (tensor_spec{element_type::f32, {sizes.back(), 1, 20'000}}));
    EXPECT_EQ(elements<float>(batch.tensor()[0]), elements<float>(expected));
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 1}));
}

TEST(DecodeAudio, ASlotOfAnotherSpecIsRefused) {
  const auto in = sample_of(audio_path(speech_wav));
  const decode_audio decode({.channels = 1, .samples = 100});
  EXPECT_THAT([&] { decode(in, tensor(element_type::f32, {1, 99})); },
              ThrowsMessage<error>(HasSubstr("f32[1, 99] instead of contiguous f32[1, 100]")));
  EXPECT_THAT([&] { decode_audio()(in, tensor(element_type::f32, {1, 99})); },
              ThrowsMessage<error>(HasSubstr("needs the options samples and channels")));
}

TEST(DecodeAudio, OptionsThatCannotWorkAreRefused) {
  const auto refused = [](const audio_options& options, const std::string& why) {
    EXPECT_THAT([&] { decode_audio{options}; }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refused({.sample_rate = 1'000'000}, "sample_rate");
  refused({.type = element_type::u16}, "type");
  refused({.stream = -1}, "stream");
  refused({.layout = audio_layout{2}}, "layout is no value of audio_layout");
  refused({.fit = audio_fit{4}}, "fit is no value of audio_fit");
  refused({.fit = audio_fit::exact}, "fit needs samples");
  refused({.offset = -1}, "offset");
  refused({.offset = std::nan("")}, "offset");
  refused({.duration = 0}, "duration");
  refused({.random_offset = true}, "random_offset");
  refused({.samples = 10}, "channels");
  refused({.channels = 1, .samples = 10, .max_samples = 9}, "max_samples");
}

TEST(DecodeAudio, AWindowBehindTheEndIsRefused) {
  expect_refused(audio_path(speech_wav), {.offset = 3}, "no samples in the window");
  expect_refused(audio_path(speech_flac), {.offset = 3}, "no samples in the window");
}

TEST(DecodeAudio, MoreSamplesThanAllowedAreRefused) {
  expect_refused(audio_path(speech_wav), {.max_samples = 31'999}, "max_samples");
  expect_refused(audio_path(audio_recipes()[0]), {.max_samples = 31'999}, "max_samples");
}

TEST(DecodeAudio, FilesWithoutAudioAreRefused) {
  expect_refused(video_path({"silent.mp4", "-c:v libx264"}), {}, "no audio stream");
  const decode_audio decode;
  EXPECT_THAT([&] { decode(sample("a.wav")); }, ThrowsMessage<error>(HasSubstr("has no data")));
  buffer zeros(100);
  std::memset(zeros.data(), 0, zeros.size());
  EXPECT_THAT([&] { decode(sample("a.wav").with_data(zeros)); },
              ThrowsMessage<error>(HasSubstr("a.wav")));
}

TEST(DecodeAudio, AWavFileThatIsCutOffIsRefused) {
  const auto path = audio_path(speech_wav);
  const auto file = read_bytes(path);
  const auto cut = sample("cut.wav").with_data(file.slice(0, file.size() - 2));
  EXPECT_THAT([&] { decode_audio()(cut); }, ThrowsMessage<error>(HasSubstr("its data claim")));
}

// Some of a file's bytes changed, or the file cut off.
static buffer damaged(const buffer& file, std::mt19937_64& random) {
  buffer copy(random() % 3 == 0 ? random() % file.size() : file.size());
  std::memcpy(copy.data(), file.data(), copy.size());
  for (std::uint64_t i = random() % 8; i > 0 && !copy.empty(); --i)
    copy.data()[random() % copy.size()] = static_cast<std::byte>(random());
  return copy;
}

TEST(DecodeAudio, DamageEndsInAnErrorOrInSamples) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const auto& recipe : audio_recipes()) {
    const auto file = read_bytes(audio_path(recipe));
    for (int i = 0; i < 20; ++i) {
      const auto policy = i % 2 == 0 ? damage_policy::refuse : damage_policy::tolerate;
      const decode_audio decode(
          {.sample_rate = 16'000, .channels = 1, .damage = policy, .max_samples = 1 << 22});
      try {
        EXPECT_GT(decode(sample(recipe.file).with_data(damaged(file, random))).shape()[1], 0);
      } catch (const error& refused) {
        EXPECT_THAT(refused.what(), HasSubstr(recipe.file));
      }
    }
  }
}

TEST(DecodeAudio, MemoryIsEstimatedFromTheHeaderOfWav) {
  const auto in = sample_of(audio_path(speech_wav));
  EXPECT_EQ(decode_audio()(in).spec().bytes(), decode_audio().memory_needed(in));
  EXPECT_EQ(decode_audio({.channels = 1, .samples = 100}).memory_to_write(in), 0U);
  EXPECT_EQ(decode_audio({.channels = 1, .samples = 100}).memory_needed(in), 400U);
  const auto compressed = sample_of(audio_path(speech_flac));
  EXPECT_EQ(decode_audio({.channels = 1, .samples = 100}).memory_needed(compressed),
            400U + decode_audio().memory_to_write(compressed));
}

TEST(LoadAudio, LoadsAPathAndAReader) {
  const auto path = audio_path(speech_flac);
  const auto expected = elements<float>(audio_of_file(path, {.sample_rate = 8'000}));
  runtime run({.threads = 1});
  EXPECT_EQ(elements<float>(sync_wait(run, load_audio(path, {.sample_rate = 8'000}))), expected);
  const auto reader = std::make_shared<memory_reader>(read_bytes(path), "x.flac");
  EXPECT_EQ(elements<float>(sync_wait(load_audio(reader, {.sample_rate = 8'000}))), expected);
}

// A reader that is not in memory, and counts.
class counted_reader final : public byte_reader {
 public:
  explicit counted_reader(buffer content, std::string name = "long.flac")
      : all_(std::move(content), std::move(name)) {}

  const std::string& name() const noexcept override { return all_.name(); }
  std::uint64_t size() const override { return all_.size(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    bytes_read += into.size();
    return all_.read_at(into, offset);
  }
  using byte_reader::read_at;

  mutable std::size_t bytes_read = 0;

 private:
  memory_reader all_;
};

TEST(LoadAudio, OfAWindowOfALargeFileOnlyAPartIsRead) {
  const auto path = media_directory / "long.wav";
  media_files::run(
      "-f lavfi -i aevalsrc=0.3*sin(440*t*t)|0.2*sin(660*t):s=48000:d=60 -c:a "
      "pcm_s24le " +
      path);
  const auto file = read_bytes(path);
  const auto reader = std::make_shared<counted_reader>(file);
  const audio_options options{.sample_rate = 16'000, .channels = 1, .offset = 30, .duration = 1};
  runtime run({.threads = 1});
  const auto part = sync_wait(run, load_audio(reader, options));
  EXPECT_LT(reader->bytes_read, file.size() / 4);
  EXPECT_EQ(elements<float>(part),
            elements<float>(decode_audio(options)(sample("a").with_data(file))));
}

static std::string noise_path(const std::string& file, const std::string& arguments) {
  const auto path = media_directory / file;
  if (!std::filesystem::exists(path))
    media_files::run("-f lavfi -i anoisesrc=r=44100:d=24:a=0.3:seed=5 -ac 2 " + arguments + " " +
                     path);
  return path;
}

static double largest_difference(const tensor& part, const tensor& whole, std::int64_t first) {
  double largest = 0;
  for (std::int64_t c = 0; c < part.shape()[0]; ++c)
    for (std::int64_t i = 0; i < part.shape()[1]; ++i)
      largest = std::max<double>(largest,
                                 std::abs(part.data<float>()[c * part.shape()[1] + i] -
                                          whole.data<float>()[c * whole.shape()[1] + first + i]));
  return largest;
}

// Whether windows at milliseconds of a file, from memory and from a reader, are slices of all.
static void expect_windows_are_slices(const std::string& path, double tolerance, int windows = 40) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(path + ", seed " + std::to_string(seed));
  std::mt19937_64 draw(seed);
  const auto file = read_bytes(path);
  const auto in = sample(path).with_data(file);
  const auto whole = decode_audio()(in);
  const std::int64_t rate = demuxer(file, path).best(stream_kind::audio).sample_rate();
  const auto samples_before = [&](std::int64_t ms) { return (ms * rate + 999) / 1000; };
  const auto all = whole.shape()[1] * 1000 / rate;
  runtime run({.threads = 1});
  for (int i = 0; i < windows; ++i) {
    // At the beginning, at the end, and anywhere.
    const auto length = static_cast<std::int64_t>(1 + draw() % 900);
    const auto latest = static_cast<std::uint64_t>(all - length);
    const auto from = static_cast<std::int64_t>(i < 2 ? 0 : i < 4 ? latest : draw() % latest);
    const decode_audio decode({.offset = static_cast<double>(from) / 1000,
                               .duration = static_cast<double>(length) / 1000});
    const auto reader = std::make_shared<counted_reader>(file);
    const auto part = i % 2 == 0 ? decode(in) : sync_wait(run, decode.read(reader));
    const auto first = samples_before(from);
    ASSERT_EQ(part.shape()[1], samples_before(from + length) - first) << from << " ms";
    ASSERT_LE(largest_difference(part, whole, first), tolerance) << from << " ms";
  }
}

TEST(DecodeAudio, AWindowCountsFromTheFirstSampleAlsoWhereTheFileStatesNoStart) {
  const std::string late = " -output_ts_offset 5";
  expect_windows_are_slices(noise_path("late-flac.mkv", "-c:a flac" + late), 0);
  expect_windows_are_slices(noise_path("late-vorbis.mkv", "-c:a libvorbis -q:a 10" + late), 0);
  expect_windows_are_slices(noise_path("late-opus.mkv", "-c:a libopus -b:a 510k" + late), 0.003);
  expect_windows_are_slices(noise_path("late-aac.mkv", "-c:a aac -aac_pns 0 -b:a 400k" + late), 0);
  expect_windows_are_slices(noise_path("late-mp3.mkv", "-c:a libmp3lame -b:a 320k" + late), 0);
}

TEST(DecodeAudio, AWindowIsASliceOfAllInOtherContainers) {
  const std::string late = " -output_ts_offset 5";
  expect_windows_are_slices(noise_path("flac.mkv", "-c:a flac"), 0);
  expect_windows_are_slices(noise_path("vorbis.webm", "-c:a libvorbis -q:a 10"), 0);
  expect_windows_are_slices(noise_path("late.ts", "-c:a libmp3lame -b:a 320k" + late), 0);
  expect_windows_are_slices(noise_path("late.mp4", "-c:a libmp3lame -b:a 320k" + late), 0);
  expect_windows_are_slices(noise_path("late.ogg", "-c:a libvorbis -q:a 10" + late), 0);
  expect_windows_are_slices(noise_path("adts.aac", "-c:a aac -aac_pns 0 -b:a 400k"), 0);
  expect_windows_are_slices(noise_path("alaw.wav", "-c:a pcm_alaw"), 0);
}

// Decoders return several frames of a packet, of which only the first has a time, or the last one
// without a packet.
TEST(DecodeAudio, AWindowHasTheFramesThatHaveNoTime) {
  expect_windows_are_slices(noise_path("ima.wav", "-c:a adpcm_ima_wav"), 0, 12);
  expect_windows_are_slices(noise_path("ms.wav", "-c:a adpcm_ms"), 0, 12);
  expect_windows_are_slices(noise_path("wmav2.wma", "-c:a wmav2 -b:a 128k"), 0, 12);
}

TEST(DecodeAudio, AWindowIsASliceOfAllWhereSeeksEndElsewhere) {
  expect_windows_are_slices(noise_path("flac.ogg", "-c:a flac"), 0, 12);
  expect_windows_are_slices(noise_path("speex.ogg", "-ar 16000 -ac 1 -c:a libspeex"), 0, 12);
  expect_windows_are_slices(noise_path("mp2.mpg", "-c:a mp2"), 0, 12);
  expect_windows_are_slices(noise_path("mp3.mpg", "-c:a libmp3lame -b:a 320k"), 0, 12);
}

// Decoders that remember more than the quarter of a second before a window.
TEST(DecodeAudio, AWindowIsASliceOfAllWhereDecodersRemember) {
  expect_windows_are_slices(noise_path("raw.ac3", "-c:a ac3 -b:a 192k"), 0, 12);
  expect_windows_are_slices(noise_path("ac3.ts", "-c:a ac3 -b:a 192k"), 0, 12);
  expect_windows_are_slices(noise_path("eac3.mp4", "-c:a eac3 -b:a 192k"), 0, 12);
  expect_windows_are_slices(noise_path("raw.mp2", "-c:a mp2"), 0, 12);
  expect_windows_are_slices(noise_path("truehd.mka", "-c:a truehd -strict -2"), 0, 12);
  expect_windows_are_slices(noise_path("ima.mov", "-c:a adpcm_ima_qt"), 0, 12);
  expect_windows_are_slices(noise_path("g726.wav", "-ar 8000 -ac 1 -c:a g726"), 0, 12);
}

// Frames of low bit rates may begin many frames earlier.
TEST(DecodeAudio, AWindowOfMp3HasTheBitsOfEarlierFrames) {
  const std::string mp3 = " -c:a libmp3lame -reservoir 1 -b:a ";
  expect_windows_are_slices(noise_path("reservoir.mp3", "-ar 48000" + mp3 + "32k"), 0);
  expect_windows_are_slices(noise_path("mono.mp3", "-ar 24000 -ac 1" + mp3 + "8k"), 0);
  expect_windows_are_slices(noise_path("stereo.mp3", "-ar 24000" + mp3 + "8k"), 0);
}

TEST(DecodeAudio, AWindowIsASliceOfAllInContainersOfVideo) {
  expect_windows_are_slices(noise_path("pcm.mkv", "-c:a pcm_s16le"), 0, 12);
  expect_windows_are_slices(noise_path("alac.mkv", "-c:a alac"), 0, 12);
  expect_windows_are_slices(noise_path("alac.caf", "-c:a alac"), 0, 12);
  expect_windows_are_slices(noise_path("pcm.mov", "-c:a pcm_s24le"), 0, 12);
  expect_windows_are_slices(noise_path("pcm.avi", "-c:a pcm_s16le"), 0, 12);
  expect_windows_are_slices(noise_path("flac.mp4", "-c:a flac -strict -2"), 0, 12);
  expect_windows_are_slices(noise_path("lossy.flv", "-c:a aac -aac_pns 0 -b:a 400k"), 0, 12);
  expect_windows_are_slices(noise_path("lossy.ts", "-c:a aac -aac_pns 0 -b:a 400k"), 0, 12);
  expect_windows_are_slices(noise_path("lossless.wv", "-c:a wavpack"), 0, 12);
  expect_windows_are_slices(noise_path("lossless.tta", "-c:a tta"), 0, 12);
}

// Two files in one, whose times overlap.
static std::string joined_path(const std::string& from, const std::string& file) {
  const auto path = media_directory / file;
  const auto part = read_bytes(from);
  std::ofstream out(path, std::ios::binary);
  out << part.text() << part.text();
  return path;
}

// One file behind another of equal streams, but for the rate.
static std::string joined_path_of_rates() {
  const auto path = joined_path(noise_path("one.ogg", "-t 14 -c:a libvorbis"), "rates.ogg");
  const auto other = read_bytes(noise_path("other.ogg", "-t 14 -ar 48000 -c:a libvorbis"));
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size / 2);
  std::ofstream(path, std::ios::binary | std::ios::app) << other.text();
  return path;
}

TEST(DecodeAudio, DecodersThatAFileHasChangedAreNotReused) {
  const auto path = noise_path("one.ogg", "-t 14 -c:a libvorbis");
  const auto expected = elements<float>(audio_of_file(path, {}));
  try {
    EXPECT_GT(audio_of_file(joined_path_of_rates(), {}).shape()[1], 0);
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::unsupported);  // by newer releases of FFmpeg
  }
  EXPECT_EQ(elements<float>(audio_of_file(path, {})), expected);
}

TEST(DecodeAudio, AWindowBehindAChangeOfTheRateIsRefused) {
  const auto path = joined_path_of_rates();
  EXPECT_EQ(audio_of_file(path, {.offset = 13, .duration = 0.5}).shape()[1], 22'050);
  EXPECT_THAT([&] { audio_of_file(path, {.offset = 14.5, .duration = 0.5}); },
              ThrowsMessage<error>(testing::AnyOf(HasSubstr("sample rate changes"),
                                                  HasSubstr("Not yet implemented in FFmpeg"))));
}

// Whether windows of a second, one behind the other, have all samples together.
static void expect_windows_have_all(const std::string& path) {
  SCOPED_TRACE(path);
  const auto file = read_bytes(path);
  std::int64_t all = 0;
  std::int64_t sum = 0;
  for (const auto& each : decode(demux(file, path, stream_kind::audio))) all += each.samples();
  for (int i = -1; i < 26; ++i) {
    time_window window;
    if (i >= 0) window.begin = i;
    if (i < 25) window.end = i + 1;
    for (const auto& each : decode(demux(file, path, stream_kind::audio, window)))
      sum += each.samples();
  }
  EXPECT_EQ(sum, all);
}

TEST(DecodeAudio, WindowsOfPacketsHaveAllSamplesTogether) {
  expect_windows_have_all(noise_path("ima.wav", "-c:a adpcm_ima_wav"));
  expect_windows_have_all(noise_path("wmav2.wma", "-c:a wmav2 -b:a 128k"));
  expect_windows_have_all(noise_path("flac.ogg", "-c:a flac"));
  expect_windows_have_all(noise_path("speex.ogg", "-ar 16000 -ac 1 -c:a libspeex"));
  expect_windows_have_all(noise_path("mp2.mpg", "-c:a mp2"));
  expect_windows_have_all(noise_path("raw.ac3", "-c:a ac3 -b:a 192k"));
  expect_windows_have_all(noise_path("vorbis.webm", "-c:a libvorbis -q:a 10"));
  expect_windows_have_all(noise_path("truehd.mka", "-c:a truehd -strict -2"));
  expect_windows_have_all(
      noise_path("long-frames.webm", "-c:a libopus -b:a 510k -frame_duration 60"));
}

TEST(DecodeAudio, WindowsOfPacketsOfJoinedFilesAreRefused) {
  const auto path = joined_path(noise_path("one.ogg", "-t 14 -c:a libvorbis"), "joined.ogg");
  EXPECT_THAT([&] { demux(read_bytes(path), path, stream_kind::audio, {.begin = 10}); },
              ThrowsMessage<error>(HasSubstr("its times go back")));
}

TEST(DecodeAudio, AWindowOfJoinedFilesIsASliceOfAll) {
  const auto vorbis = noise_path("one.ogg", "-t 14 -c:a libvorbis");
  const auto aac = noise_path("one.ts", "-t 14 -c:a aac -aac_pns 0 -b:a 400k");
  expect_windows_are_slices(joined_path(vorbis, "joined.ogg"), 0, 12);
  expect_windows_are_slices(joined_path(aac, "joined-aac.ts"), 0, 12);
}

// Encoders of AAC may store the loudness of noise alone (perceptual noise substitution). A decoder
// fills in random numbers, which depend on where it began.
TEST(DecodeAudio, AWindowOfAacHasOtherNoiseWhereTheDecoderMakesIt) {
  const auto path = noise_path("substituted.m4a", "-ac 1 -c:a aac -aac_pns 1 -b:a 32k");
  const auto whole = audio_of_file(path, {});
  const auto part = audio_of_file(path, {.offset = 10, .duration = 1});
  ASSERT_EQ(part.shape(), (dimensions{1, 44'100}));
  EXPECT_GT(largest_difference(part, whole, 441'000), 0.001);
}

static const media_recipe untold_recipes[] = {
    {"untold.mp3", "-ac 1 -c:a libmp3lame -q:a 3 -write_xing 0"},
    {"untold.aac", "-ac 1 -c:a aac -aac_pns 0"},
    {"untold.mkv", "-ac 1 -c:a flac"},
    {"untold-vorbis.mkv", "-ac 1 -c:a libvorbis -output_ts_offset 3"},
    {"padded.mp3", "-ac 1 -c:a libmp3lame"},
    {"untold.ogg", "-ac 1 -c:a libvorbis -output_ts_offset 3"},
    {"untold.wma", "-ac 1 -c:a wmav1 -b:a 128k"},
    {"untold-ima.wav", "-ac 1 -c:a adpcm_ima_wav"}};

TEST(DecodeAudio, ARandomWindowIsInTheFileAlsoWhereItsDurationMustBeCounted) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  for (const auto& recipe : untold_recipes) {
    SCOPED_TRACE(recipe.file);
    const auto in = sample_of(audio_path(recipe));
    const auto whole = elements<float>(decode_audio()(in));
    const decode_audio decode({.channels = 1,
                               .random_offset = true,
                               .samples = static_cast<std::int64_t>(whole.size()) - 4'000,
                               .fit = audio_fit::crop});
    for (std::uint64_t i = 0; i < 30; ++i) {
      const auto part = elements<float>(decode(in, random(seed, i)));
      ASSERT_NE(std::search(whole.begin(), whole.end(), part.begin(), part.end()), whole.end());
    }
  }
}

TEST(DecodeAudio, ADurationThatFfmpegEstimatesIsNotOneThatTheFileStates) {
  for (const auto& recipe : {untold_recipes[0], untold_recipes[1]}) {
    const auto path = audio_path(recipe);
    const demuxer file(read_bytes(path), path);
    EXPECT_EQ(file.duration(), std::nullopt) << path;
    EXPECT_EQ(file.best(stream_kind::audio).duration(), std::nullopt) << path;
  }
}

TEST(DecodeAudio, ARandomWindowOfALargeFileIsTheSameFromMemoryAndFromAReader) {
  const auto path = noise_path("adts.aac", "-c:a aac -aac_pns 0 -b:a 400k");
  const auto file = read_bytes(path);
  const decode_audio decode({.channels = 1, .random_offset = true, .samples = 8'000});
  runtime run({.threads = 1});
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto reader = std::make_shared<counted_reader>(file);
    EXPECT_EQ(elements<float>(sync_wait(run, decode.read(reader, random(7, i)))),
              elements<float>(decode(sample(path).with_data(file), random(7, i))));
  }
}

TEST(DecodeAudio, ACafFileOfUnknownSizeIsDecodedToItsEnd) {
  const auto path = audio_path({"sized.caf", "-c:a pcm_s16le"});
  const auto whole = audio_of_file(path, {});
  const auto piped = output_of_ffmpeg("-i " + path + " -c copy -bitexact -f caf -");
  buffer file(piped.size());
  std::copy_n(piped.data(), piped.size(), reinterpret_cast<char*>(file.data()));
  EXPECT_EQ(elements<float>(decode_audio()(sample("piped.caf").with_data(file))),
            elements<float>(whole));
  runtime run({.threads = 1});
  const auto reader = std::make_shared<counted_reader>(file, "piped.caf");
  EXPECT_EQ(elements<float>(sync_wait(run, load_audio(reader))), elements<float>(whole));
  const auto cut_in_a_sample = sample("cut.caf").with_data(file.slice(0, file.size() - 1));
  EXPECT_THAT([&] { decode_audio()(cut_in_a_sample); }, ThrowsMessage<error>(HasSubstr("cut.caf")));
}

TEST(DecodeAudio, ACafFileThatIsCutOffIsRefused) {
  const auto path = audio_path({"sized.caf", "-c:a pcm_s16le"});
  const auto file = read_bytes(path);
  const auto cut = sample(path).with_data(file.slice(0, file.size() / 2));
  EXPECT_THAT([&] { decode_audio()(cut); },
              ThrowsMessage<error>(HasSubstr("bytes that its header states")));
}

TEST(DecodeAudio, AWavFileThatIsCutOffIsDecodedAsFarAsItGoesIfDamageIsTolerated) {
  const auto path = audio_path(speech_wav);
  const auto file = read_bytes(path);
  const auto whole = elements<float>(audio_of_file(path, {}));
  for (const std::size_t missing : {1U, 2U, 1'001U, 63'900U}) {
    const auto cut = sample("cut.wav").with_data(file.slice(0, file.size() - missing));
    const auto there = whole.size() - (missing + 1) / 2;
    const std::vector expected(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(there));
    const decode_audio decode({.damage = damage_policy::tolerate});
    EXPECT_EQ(elements<float>(decode(cut)), expected);
    EXPECT_EQ(decode.damaged(), 1U);
    const decode_audio part(
        {.channels = 1, .random_offset = true, .samples = 40, .damage = damage_policy::tolerate});
    for (std::uint64_t i = 0; i < 5; ++i) {
      const auto window = elements<float>(part(cut, random(7, i)));
      EXPECT_NE(std::search(whole.begin(), whole.end(), window.begin(), window.end()), whole.end());
    }
  }
  const decode_audio decode({.damage = damage_policy::tolerate});
  const auto header = sample("cut.wav").with_data(file.slice(0, 40));
  EXPECT_THAT([&] { decode(header); }, ThrowsMessage<error>(HasSubstr("cut.wav")));
}

TEST(DecodeAudio, DamageOfALargeFileIsToleratedAndCountedAlsoFromAReader) {
  const auto file = read_bytes(noise_path("flac.mkv", "-c:a flac"));
  const auto reader = std::make_shared<counted_reader>(file.slice(0, file.size() / 4 * 3));
  const audio_options options{.offset = 17, .duration = 6};
  runtime run({.threads = 1});
  EXPECT_THAT([&] { sync_wait(run, load_audio(reader, options)); },
              ThrowsMessage<error>(HasSubstr("long.flac")));
  auto tolerant = options;
  tolerant.damage = damage_policy::tolerate;
  const decode_audio decode(tolerant);
  EXPECT_GT(sync_wait(run, decode.read(reader)).shape()[1], 0);
  EXPECT_GT(decode.damaged(), 0U);
}

TEST(DecodeAudio, AStreamOfChoiceIsDecoded) {
  const auto path = media_directory / "two.mkv";
  media_files::run(
      "-f lavfi -i testsrc2=size=64x48:rate=5:duration=10 -f lavfi -i "
      "sine=frequency=440:duration=10 -f lavfi -i sine=frequency=700:duration=10 -map 0 -map 1 "
      "-map 2 -c:v mpeg4 -c:a pcm_s16le " +
      path);
  const auto file = read_bytes(path);
  const auto in = sample(path).with_data(file);
  runtime run({.threads = 1});
  for (const int stream : {1, 2}) {
    const auto bytes = output_of_ffmpeg("-i " + path + " -map 0:" + std::to_string(stream) +
                                        " -c:a pcm_f32le -f f32le -");
    std::vector<float> expected(bytes.size() / sizeof(float));
    std::memcpy(expected.data(), bytes.data(), bytes.size());
    EXPECT_EQ(elements<float>(decode_audio({.stream = stream})(in)), expected);
    const audio_options window{.stream = stream, .offset = 3, .duration = 1};
    const auto part = elements<float>(sync_wait(run, load_audio(path, window)));
    EXPECT_EQ(part, std::vector(expected.begin() + 132'300, expected.begin() + 176'400));
  }
  EXPECT_EQ(elements<float>(decode_audio()(in)), elements<float>(decode_audio({.stream = 1})(in)));
}

static void expect_no_such_audio(const std::string& path, int stream, const std::string& why) {
  const auto invalid = testing::AllOf(
      testing::Property(&error::code, errc::invalid_argument),
      testing::Property(&error::what, testing::AllOf(HasSubstr(path), HasSubstr(why))));
  EXPECT_THAT([&] { audio_of_file(path, {.stream = stream}); }, testing::Throws<error>(invalid));
  const audio_options window{.stream = stream, .duration = 1};
  const auto reader = std::make_shared<counted_reader>(read_bytes(path), path);
  runtime run({.threads = 1});
  EXPECT_THAT([&] { sync_wait(run, load_audio(reader, window)); }, testing::Throws<error>(invalid));
}

TEST(DecodeAudio, AStreamThatIsNotAudioIsRefused) {
  const auto path = media_directory / "pictures.mkv";
  media_files::run(
      "-f lavfi -i testsrc2=size=640x480:rate=25:duration=2 -f lavfi -i sine=duration=2 -map 0 "
      "-map 1 -c:v ffv1 -c:a pcm_s16le " +
      path);
  expect_no_such_audio(path, 0, "stream 0 is video, not audio");
  expect_no_such_audio(path, 2, "stream 2");
  expect_refused(audio_path(speech_wav), {.stream = 1}, "no stream 1");
  EXPECT_EQ(audio_of_file(audio_path(speech_wav), {.stream = 0}).shape(), (dimensions{1, 32'000}));
}

// The words of bytes in another order: of interleaved channels, those of planar ones.
static std::string planes_of(const std::string& interleaved, std::int64_t channels,
                             std::size_t word) {
  std::string planar;
  const auto step = static_cast<std::size_t>(channels) * word;
  for (std::size_t c = 0; c < step; c += word)
    for (std::size_t i = c; i < interleaved.size(); i += step)
      planar += interleaved.substr(i, word);
  return planar;
}

static std::string bytes_of(const tensor& from) {
  return {reinterpret_cast<const char*>(from.bytes()), from.spec().bytes()};
}

TEST_P(AudioOfFile, HasElementsOfEveryType) {
  const auto path = audio_path(GetParam());
  struct {
    element_type type;
    std::string format;
  } const types[] = {{element_type::u8, "u8"},
                     {element_type::i16, "s16le"},
                     {element_type::i32, "s32le"},
                     {element_type::f32, "f32le"},
                     {element_type::f64, "f64le"}};
  for (const auto& [type, format] : types)
    for (const int rate : {0, 16'000}) {
      const auto interleaved = audio_of_file(
          path, {.sample_rate = rate, .layout = audio_layout::interleaved, .type = type});
      const auto expected = output_of_ffmpeg("-i " + path + (rate > 0 ? " -ar 16000" : "") +
                                             " -c:a pcm_" + format + " -f " + format + " -");
      EXPECT_TRUE(bytes_of(interleaved) == expected) << format << ' ' << rate;
      const auto planar = audio_of_file(path, {.sample_rate = rate, .type = type});
      EXPECT_TRUE(bytes_of(planar) ==
                  planes_of(expected, interleaved.shape()[1], element_bytes(type)))
          << format << ' ' << rate;
    }
}

TEST(DecodeAudio, ShorterAudioOfBytesIsPaddedWithSilence) {
  const auto path = audio_path(speech_wav);
  for (const auto fit : {audio_fit::pad_or_crop, audio_fit::pad}) {
    const auto padded = audio_of_file(
        path, {.channels = 1, .type = element_type::u8, .samples = 32'100, .fit = fit});
    const auto* first = padded.data<std::uint8_t>();
    EXPECT_TRUE(std::all_of(first + 32'000, first + 32'100, [](int each) { return each == 128; }));
  }
}

// A reader that requests a stop while it reads.
class stopping_reader final : public byte_reader {
 public:
  stopping_reader(buffer content, std::size_t reads, std::stop_source stop)
      : all_(std::move(content), "stopped.flac"), reads_(reads), stop_(std::move(stop)) {}

  const std::string& name() const noexcept override { return all_.name(); }
  std::uint64_t size() const override { return all_.size(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    if (++count_ == reads_) stop_.request_stop();
    return all_.read_at(into, offset);
  }
  using byte_reader::read_at;

  std::size_t count() const noexcept { return count_; }

 private:
  memory_reader all_;
  std::size_t reads_;
  mutable std::stop_source stop_;
  mutable std::atomic<std::size_t> count_ = 0;
};

// Returns how many reads there were.
static std::size_t expect_stop(const buffer& file, std::size_t read, const audio_options& options) {
  std::stop_source stop;
  const auto reader = std::make_shared<stopping_reader>(file, read, stop);
  runtime run({.threads = 1});
  EXPECT_THAT([&] { sync_wait(run, load_audio(reader, options), stop.get_token()); },
              testing::Throws<error>(testing::Property(&error::code, errc::stopped)));
  return reader->count();
}

TEST(LoadAudio, AStopAtTheLastReadEndsTheDecoding) {
  const auto file = read_bytes(noise_path("flac.mkv", "-c:a flac"));
  const auto reads_of = [&](const audio_options& options) {
    const auto reader = std::make_shared<stopping_reader>(file, 0, std::stop_source());
    runtime run({.threads = 1});
    sync_wait(run, load_audio(reader, options));
    return reader->count();
  };
  const audio_options window{.offset = 20, .duration = 1};
  for (const auto& options : {audio_options{}, window}) {
    const auto reads = reads_of(options);
    for (std::size_t read = 1; read <= reads; read += std::max<std::size_t>(1, reads / 10))
      EXPECT_LE(expect_stop(file, read, options), read + 1);
    expect_stop(file, reads, options);
  }
}

// How much of the budget was used at once while a run loaded audio.
template <class Load>
static std::size_t peak_of(const std::string& path, Load load) {
  runtime run({.threads = 1});
  const auto loaded = from(std::vector<std::string>{path}) | map(load);
  for (const auto& each : run.run(loaded)) EXPECT_GT(each.spec().elements(), 0U);
  return run.memory().stats().peak_bytes;
}

TEST(LoadAudio, CountsWhatItHoldsToTheBudgetOfARun) {
  const auto path = noise_path("flac.mkv", "-c:a flac");
  const std::size_t second = std::size_t{44'100} * 2 * sizeof(float);
  const auto file_bytes = std::filesystem::file_size(path);
  const auto window = [](std::string from) {
    return load_audio(std::move(from), {.offset = 2, .duration = 4});
  };
  EXPECT_GT(peak_of(path, window), 4 * second);
  const auto all = [](std::string from) { return load_audio(std::move(from)); };
  EXPECT_GT(peak_of(path, all), file_bytes + 24 * second);
  const auto fixed = [](std::string from) {
    return load_audio(std::move(from),
                      {.channels = 2, .type = element_type::f16, .samples = 441'000});
  };
  EXPECT_GT(peak_of(path, fixed), 15 * second);  // the halves, and the floats before
}

TEST(DecodeAudio, HoldsOnePacketAtATime) {
  const auto path = noise_path("flac.mkv", "-c:a flac");
  const auto in = sample_of(path);
  const decode_audio decode({.channels = 1, .offset = 1, .samples = 441'000});
  EXPECT_LT(decode.memory_to_write(in), in.data().size() / 8);
  EXPECT_EQ(decode.memory_needed(in), decode.memory_to_write(in) + 441'000 * sizeof(float));
}

TEST(LoadAudio, OfAUrlIsThatOfTheFile) {
  runtime run;
  test::mounted_store store("sounds://");
  for (const char* file : {"pcm.wav", "flac.flac", "aac.m4a"}) {
    const auto recipes = audio_recipes();
    const auto found = std::find_if(recipes.begin(), recipes.end(), [&](const auto& each) {
      return std::string_view(each.file) == file;
    });
    const auto path = audio_path(*found);
    const auto url = std::string("sounds://") + file;
    store->put(url, std::string(read_bytes(path).text()));
    EXPECT_EQ(elements<float>(sync_wait(run, load_audio(url))),
              elements<float>(sync_wait(run, load_audio(path))))
        << file;
  }
}

}  // namespace lade::media::audio_test
