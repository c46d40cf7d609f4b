#include "../../support/seed.hpp"

#include <lade/batch.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include "media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lade::media {

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
  refused({.type = element_type::u8}, "type");
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

TEST(DecodeAudio, MemoryIsToldByTheHeaderOfWav) {
  const auto in = sample_of(audio_path(speech_wav));
  EXPECT_EQ(decode_audio()(in).spec().bytes(), decode_audio().memory_needed(in));
  EXPECT_EQ(decode_audio({.channels = 1, .samples = 100}).memory_to_write(in), 0U);
  EXPECT_EQ(decode_audio({.channels = 1, .samples = 100}).memory_needed(in), 400U);
  const auto compressed = sample_of(audio_path(speech_flac));
  EXPECT_EQ(decode_audio().memory_needed(compressed), compressed.data().size());
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
  explicit counted_reader(buffer content) : all_(std::move(content), "long.flac") {}

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

}  // namespace lade::media
