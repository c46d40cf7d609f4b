#include "../../support/counted_store.hpp"
#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "oracle.hpp"
#include "zip_writer.hpp"

#include <lade/error.hpp>
#include <lade/io/formats/wav.hpp>
#include <lade/io/store.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>

namespace lade::io::wav_test {

using namespace lade::test;
using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct wav_format {
  unsigned tag = 1;
  unsigned channels = 1;
  unsigned rate = 10;
  unsigned bits = 16;
  unsigned frame = 2;
};

static std::string chunk(const std::string& mark, const std::string& content) {
  return mark + little(content.size(), 4) + content + std::string(content.size() % 2, '\0');
}

static std::string format_of(const wav_format& of) {
  return little(of.tag, 2) + little(of.channels, 2) + little(of.rate, 4) +
         little(of.rate * of.frame, 4) + little(of.frame, 2) + little(of.bits, 2);
}

static std::string riff_of(const std::string& chunks) {
  return "RIFF" + little(chunks.size() + 4, 4) + "WAVE" + chunks;
}

static std::string wav_of(const wav_format& format, const std::string& data) {
  return riff_of(chunk("fmt ", format_of(format)) + chunk("data", data));
}

static tensor parse(const std::string& file, wav_options options = {}) {
  return parse_wav(buffer_of(file), "x.wav", options);
}

static void expect_refusal(const std::string& file, const std::string& why) {
  EXPECT_THAT([&] { parse(file); },
              ThrowsMessage<error>(AllOf(HasSubstr("read x.wav: "), HasSubstr(why))));
}

TEST(Wav, SamplesAreAViewOfTheFile) {
  auto file = buffer_of(wav_of({.channels = 2, .frame = 4}, little(0x0004000300020001, 8)));
  auto audio = parse_wav(file, "x.wav");
  EXPECT_EQ(audio.type(), element_type::i16);
  EXPECT_EQ(audio.shape(), (dimensions{2, 2}));
  EXPECT_EQ(audio.bytes(), file.data() + 44);
  EXPECT_EQ(audio.data<std::int16_t>()[3], 4);
}

TEST(Wav, TheHeaderDescribesTheFile) {
  auto info = parse_wav_info(
      buffer_of(wav_of({.channels = 2, .rate = 8000, .frame = 4}, std::string(64'000, 'x'))), "x");
  EXPECT_EQ(info.encoding, wav_encoding::i16);
  EXPECT_EQ(info.channels, 2);
  EXPECT_EQ(info.sample_rate, 8000u);
  EXPECT_EQ(info.frames, 16'000u);
  EXPECT_EQ(info.data_offset, 44u);
  EXPECT_EQ(info.seconds(), 2);
}

TEST(Wav, SamplesOf24BitsKeepTheirValues) {
  auto audio =
      parse(wav_of({.bits = 24, .frame = 3}, std::string("\1\0\0\xff\xff\xff\0\0\x80", 9)));
  EXPECT_EQ(audio.type(), element_type::i32);
  EXPECT_EQ(audio.data<std::int32_t>()[0], 1);
  EXPECT_EQ(audio.data<std::int32_t>()[1], -1);
  EXPECT_EQ(audio.data<std::int32_t>()[2], -8'388'608);
}

TEST(Wav, SamplesBecomeFloatsBelowOne) {
  auto first = [](const wav_format& format, const std::string& data) {
    return parse(wav_of(format, data), {.to_f32 = true}).data<float>()[0];
  };
  EXPECT_EQ(first({.bits = 8, .frame = 1}, std::string(1, '\0')), -1);
  EXPECT_EQ(first({.bits = 8, .frame = 1}, "\xff"), 127.0F / 128);
  EXPECT_EQ(first({}, "\xff\x7f"), 32767.0F / 32768);
  EXPECT_EQ(first({.bits = 24, .frame = 3}, std::string("\0\0\x40", 3)), 0.5F);
  EXPECT_EQ(first({.bits = 32, .frame = 4}, std::string("\0\0\0\xc0", 4)), -0.5F);
  EXPECT_EQ(first({.tag = 3, .bits = 32, .frame = 4}, std::string("\0\0\0\x40", 4)), 2.0F);
  EXPECT_EQ(first({.tag = 3, .bits = 64, .frame = 8}, std::string("\0\0\0\0\0\0\0\x40", 8)), 2.0F);
}

static std::string extensible_of(const std::string& guid) {
  wav_format format{.tag = 0xfffe};
  return riff_of(
      chunk("fmt ", format_of(format) + little(22, 2) + little(16, 2) + little(4, 4) + guid) +
      chunk("data", "ab"));
}

TEST(Wav, ManySamplesConvertAsEachAlone) {
  const auto seed = new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const unsigned bytes : {1U, 2U, 3U, 4U}) {
    std::string data(bytes * (random() % 500), '\0');
    for (auto& each : data) each = static_cast<char>(random());
    const wav_format format{.bits = 8 * bytes, .frame = bytes};
    const auto all = parse(wav_of(format, data), {.to_f32 = true});
    for (std::size_t i = 0; i < data.size() / bytes; ++i) {
      const auto alone = wav_of(format, data.substr(i * bytes, bytes));
      EXPECT_EQ(all.data<float>()[i], parse(alone, {.to_f32 = true}).data<float>()[0]);
    }
  }
}

TEST(Wav, TheSpeakersOfAnExtensibleFormatAreKnown) {
  const std::string guid("\1\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 16);
  EXPECT_EQ(parse_wav_info(buffer_of(extensible_of(guid)), "x").channel_mask, 4U);
  EXPECT_EQ(parse_wav_info(buffer_of(wav_of({}, "ab")), "x").channel_mask, 0U);
}

TEST(Wav, ExtensibleFormatsAreRead) {
  std::string rest("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
  EXPECT_EQ(parse(extensible_of(little(1, 2) + rest)).shape(), (dimensions{1, 1}));
  expect_refusal(extensible_of(little(6, 2) + rest), "encoding 6");
  expect_refusal(extensible_of(std::string(16, '\0')), "not Microsoft's");
  expect_refusal(riff_of(chunk("fmt ", format_of({.tag = 0xfffe})) + chunk("data", "ab")),
                 "cut off");
}

TEST(Wav, OtherChunksArePassedOver) {
  auto format = chunk("fmt ", format_of({}));
  auto file = riff_of(chunk("LIST", "odd") + format + chunk("odd ", "x") +
                      chunk("bext", std::string(100'000, 'b')) + chunk("data", "abcd") +
                      chunk("LIST", "behind"));
  EXPECT_EQ(parse(file).shape(), (dimensions{2, 1}));
  auto from = std::make_shared<memory_reader>(buffer_of(file), "x.wav");
  EXPECT_EQ(sync_wait(read_wav_info(from)).frames, 2u);
}

TEST(Wav, AFileThatWasStreamedReachesToItsEnd) {
  for (std::uint64_t unknown : {std::uint64_t{0}, std::uint64_t{0xffffffff}}) {
    auto file = wav_of({}, "abcd");
    file.replace(4, 4, little(unknown, 4)).replace(40, 4, little(unknown, 4));
    EXPECT_EQ(parse(file).shape(), (dimensions{2, 1}));
    expect_refusal(file + "e", "no whole frames");
  }
  auto empty = wav_of({}, "") + "what follows";
  EXPECT_EQ(parse(empty).shape(), (dimensions{0, 1}));
}

TEST(Wav, SizesOf64BitsAreRead) {
  auto sizes = little(100, 8) + little(4, 8) + little(2, 8) + little(0, 4);
  auto file = riff_of(chunk("ds64", sizes) + chunk("fmt ", format_of({})) + chunk("data", "abcd"));
  file.replace(0, 8, "RF64\xff\xff\xff\xff").replace(file.size() - 8, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(parse(file).shape(), (dimensions{2, 1}));
  EXPECT_EQ(parse(file.replace(0, 2, "BW")).shape(), (dimensions{2, 1}));
  EXPECT_EQ(parse(file + "behind").shape(), (dimensions{2, 1}));
  expect_refusal(file.substr(0, file.size() - 1), "claim 4 bytes, and 3 follow");
  auto without = wav_of({}, "ab");
  without.replace(0, 4, "RF64").replace(40, 4, "\xff\xff\xff\xff");
  expect_refusal(without, "ds64 chunk is missing");
}

TEST(Wav, AWrongHeaderIsRefused) {
  auto format = chunk("fmt ", format_of({}));
  expect_refusal("", "ends in the header of RIFF");
  expect_refusal("RIFF....AVI and more", "does not begin as a WAV file");
  expect_refusal("RIFX....WAVE", "RIFX is not supported");
  expect_refusal(riff_of(""), "ends before its data (at byte 12)");
  expect_refusal(riff_of(format), "ends before its data (at byte 36)");
  expect_refusal(riff_of(format + "da"), "ends in the header of a chunk");
  expect_refusal(riff_of("fmt " + little(16, 4) + "1234"), "ends in its format");
  expect_refusal(riff_of(chunk("fmt ", "1234") + chunk("data", "")), "has only 4 bytes");
  expect_refusal(riff_of(format + format + chunk("data", "")), "two formats");
  expect_refusal(riff_of(chunk("data", "ab") + format), "come before their format");
  expect_refusal(wav_of({.channels = 0}, ""), "no channels");
  expect_refusal(wav_of({.rate = 0}, ""), "sample rate is 0");
}

TEST(Wav, OtherEncodingsAreUnsupported) {
  for (unsigned tag : {0u, 2u, 6u, 7u, 0x55u})
    expect_refusal(wav_of({.tag = tag}, ""), "encoding " + std::to_string(tag));
  for (unsigned bits : {0u, 4u, 12u, 40u, 64u})
    expect_refusal(wav_of({.bits = bits}, ""), "of " + std::to_string(bits) + " bits");
  expect_refusal(wav_of({.tag = 3, .bits = 16}, ""), "encoding 3 with samples of 16 bits");
}

TEST(Wav, FramesOfAnotherSizeAreRefused) {
  expect_refusal(wav_of({.channels = 2, .frame = 2}, "abcd"),
                 "it states frames of 2 bytes; 2 samples of 16 bits have 4");
  expect_refusal(wav_of({}, "abc"), "3 bytes are no whole frames of 2");
  auto cut = wav_of({}, "abcd");
  expect_refusal(cut.substr(0, cut.size() - 2), "claim 4 bytes, and 2 follow (at byte 44)");
}

TEST(Wav, AWindowIsRoundedToFramesAndEndsWithTheFile) {
  auto file = wav_of({.bits = 8, .frame = 1}, "0123456789abcdefghij");  // 2 seconds
  auto text_of = [&](double offset, double duration) {
    auto audio = parse(file, {.offset_seconds = offset, .duration_seconds = duration});
    return std::string(reinterpret_cast<const char*>(audio.bytes()), audio.spec().bytes());
  };
  constexpr double all = std::numeric_limits<double>::infinity();
  EXPECT_EQ(text_of(0, all), "0123456789abcdefghij");
  EXPECT_EQ(text_of(0.5, 0.3), "567");
  EXPECT_EQ(text_of(0.26, 0.14), "3");
  EXPECT_EQ(text_of(1.9, 5), "j");
  EXPECT_EQ(text_of(2, 1), "");
  EXPECT_EQ(text_of(1, 0), "");
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (double wrong : {-0.1, none, 2.1, 1e300, all})
    EXPECT_THAT([&] { text_of(wrong, 1); },
                ThrowsMessage<error>(HasSubstr("read a window of x.wav: offset_seconds is ")));
  for (double wrong : {-0.1, none})
    EXPECT_THAT([&] { text_of(0, wrong); },
                ThrowsMessage<error>(HasSubstr("duration_seconds is ")));
}

TEST(Wav, ASampleGetsItsAudioAndRate) {
  auto from = sample("x.wav", 3).with_data(buffer_of(wav_of({}, "abcd")));
  auto decoded = decode_wav({.to_f32 = true})(from);
  EXPECT_EQ(decoded.label(), 3);
  EXPECT_FALSE(decoded.has_data());
  EXPECT_EQ(decoded.field("sample_rate").integer(), 10);
  EXPECT_EQ(decoded.field("audio").tensor().type(), element_type::f32);
  EXPECT_THAT([] { decode_wav()(sample("none.wav")); },
              ThrowsMessage<error>(HasSubstr("none.wav")));
}

// Counts the bytes that are read.
class counting_reader final : public byte_reader {
 public:
  explicit counting_reader(buffer content) : memory_(std::move(content), "counted") {}
  const std::string& name() const noexcept override { return memory_.name(); }
  std::uint64_t size() const override { return memory_.size(); }
  using byte_reader::read_at;
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    bytes += into.size();
    return memory_.read_at(into, offset);
  }

  mutable std::uint64_t bytes = 0;

 private:
  memory_reader memory_;
};

TEST(Wav, OfAWindowOnlyItsBytesAreRead) {
  auto from = std::make_shared<counting_reader>(
      buffer_of(wav_of({.rate = 1000}, std::string(2'000'000, 'x'))));
  EXPECT_EQ(sync_wait(read_wav_info(from)).frames, 1'000'000u);
  EXPECT_LE(from->bytes, 5000u);
  auto audio = sync_wait(read_wav(from, {.offset_seconds = 900, .duration_seconds = 1}));
  EXPECT_EQ(audio.shape(), (dimensions{1000, 1}));
  EXPECT_LE(from->bytes, 12'000u);
}

TEST(Wav, BehindAUrlIsNamedWithoutSecrets) {
  const std::string url = "wav://u:secret@h/a?sig=secret";
  auto remote = std::make_shared<counted_store>();
  remote->put(url, "nonsense");
  mount("wav://", remote);
  runtime runtime;
  EXPECT_THAT([&] { sync_wait(runtime, read_wav(url)); },
              ThrowsMessage<error>(HasSubstr("wav://h/a?sig=...: ")));
  unmount("wav://");
}

class WavFile : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, WavFile,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(WavFile, IsRead) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("x.wav", wav_of({.bits = 24, .frame = 3}, "abcdef"));
  EXPECT_EQ(sync_wait(runtime, read_wav_info(path)).frames, 2u);
  EXPECT_EQ(sync_wait(runtime, read_wav(path)).data<std::int32_t>()[1], 0x666564);
  EXPECT_THAT([&] { sync_wait(runtime, read_wav(dir.write("bad", "?"))); },
              ThrowsMessage<error>(HasSubstr(dir / "bad")));
}

TEST(Wav, ReadsAllFilesThatSoundfileWrites) {
  if (!have_python("numpy, soundfile")) GTEST_SKIP() << "soundfile is not installed";
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  for (auto& file : make_files("wav", 1000, seed)) {
    auto audio = parse_wav(file.content, "x.wav");
    auto floats = parse_wav(file.content, "x.wav", {.to_f32 = true});
    ASSERT_TRUE(describe("audio", audio) + describe("f32", floats) == file.described);
    auto from = std::make_shared<counting_reader>(file.content);
    auto info = sync_wait(read_wav_info(from));
    auto begin = random() % (info.frames + 1);
    auto end = begin + random() % (info.frames - begin + 1);
    auto seconds = [&](std::uint64_t frames) {
      return static_cast<double>(frames) / info.sample_rate;
    };
    auto part = sync_wait(read_wav(
        from, {.offset_seconds = seconds(begin), .duration_seconds = seconds(end - begin)}));
    auto same = audio.slice(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
    ASSERT_TRUE(describe("part", part) == describe("part", same));
  }
}

}  // namespace lade::io::wav_test
