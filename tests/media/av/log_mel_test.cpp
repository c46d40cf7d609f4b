#include "../../../media/av/lane_fft.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"

#include <lade/error.hpp>
#include <lade/media/av/log_mel.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numbers>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace lade::media::log_mel_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The plain formula of one bin.
static std::complex<double> plain_bin(const std::vector<float>& samples, std::size_t bin) {
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < samples.size(); ++i)
    sum += static_cast<double>(samples[i]) *
           std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i * bin % samples.size()) /
                               static_cast<double>(samples.size()));
  return sum;
}

TEST(LaneFft, EqualsThePlainFormulaForEveryLane) {
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> sample(-1, 1);
  for (const std::size_t length : {2U, 4U, 6U, 14U, 16U, 30U, 50U, 64U, 122U, 400U, 512U}) {
    const lane_fft fft(length);
    std::vector<std::vector<float>> lanes(lane_fft::lanes, std::vector<float>(length));
    std::vector<lane_fft::value> signals(fft.bins());
    std::vector<lane_fft::value> spectrum(fft.bins());
    for (std::size_t l = 0; l < lanes.size(); ++l)
      for (std::size_t i = 0; i < length; ++i) {
        lanes[l][i] = sample(random);
        (i % 2 == 0 ? signals[i / 2].re : signals[i / 2].im)[l] = lanes[l][i];
      }
    fft.transform(signals, spectrum);
    const double tolerance = 1e-6 * static_cast<double>(length);
    for (std::size_t bin = 0; bin < fft.bins(); ++bin)
      for (const std::size_t l : {std::size_t{0}, random() % lane_fft::lanes}) {
        const auto expected = plain_bin(lanes[l], bin);
        ASSERT_NEAR(spectrum[bin].re[l], expected.real(), tolerance) << length << " " << bin;
        ASSERT_NEAR(spectrum[bin].im[l], expected.imag(), tolerance) << length << " " << bin;
      }
  }
}

static std::vector<float> random_waveform(std::size_t samples, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> noise(0, 0.1F);
  std::vector<float> waveform(samples);
  for (std::size_t i = 0; i < samples; ++i)
    waveform[i] = noise(random) + 0.3F * std::sin(0.05F * static_cast<float>(i));
  return waveform;
}

static tensor tensor_of(const std::vector<float>& samples) {
  const tensor result(element_type::f32, {static_cast<std::int64_t>(samples.size())});
  std::copy(samples.begin(), samples.end(), result.data<float>());
  return result;
}

static std::string script_path() {
  auto from = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(from / __FILE__) && from != from.root_path())
    from = from.parent_path();
  return std::filesystem::canonical(from / __FILE__).parent_path() / "log_mel.py";
}

// What the formulas give in numpy.
static std::vector<float> expected_by_numpy(const std::vector<float>& waveform,
                                            const log_mel_options& of) {
  const testing_support::temp_dir directory;
  const auto file = directory / "samples";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(waveform.data()),
             static_cast<std::streamsize>(waveform.size() * sizeof(float)));
  constexpr std::array logs{"none", "natural", "base10", "whisper"};
  std::ostringstream line;
  line << "/usr/bin/python3 " << script_path() << ' ' << of.sample_rate << ' ' << of.n_fft << ' '
       << of.hop << ' ' << of.n_mels << ' ' << of.f_min << ' '
       << (of.f_max > 0 ? of.f_max : of.sample_rate / 2.0) << ' ' << of.power << ' '
       << (of.scale == mel_scale::htk ? "htk" : "slaney") << ' ' << of.equal_area << ' '
       << logs[static_cast<std::size_t>(of.log)] << ' ' << of.floor << ' ' << of.drop_last_frame
       << " < " << file;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(line.str().c_str(), "r"),
                                                             pclose);
  std::vector<float> values;
  for (float value = 0; std::fread(&value, sizeof value, 1, pipe.get()) == 1;)
    values.push_back(value);
  return values;
}

class LogMelOf : public testing::TestWithParam<log_mel_options> {};

TEST_P(LogMelOf, EqualsTheFormulasInNumpy) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
    GTEST_SKIP() << "numpy is not installed";
  const auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  for (const std::size_t samples : {1'000U, 16'000U, 16'123U}) {
    const auto waveform = random_waveform(samples, seed);
    const auto result = log_mel(GetParam())(tensor_of(waveform));
    const auto expected = expected_by_numpy(waveform, GetParam());
    ASSERT_EQ(result.spec().elements(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(result.data<float>()[i], expected[i], 1e-3 * std::max(1.0F, expected[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Options, LogMelOf,
                         testing::Values(log_mel_options{}, whisper_options(), whisper_options(128),
                                         log_mel_options{.n_fft = 512,
                                                         .n_mels = 40,
                                                         .f_min = 20,
                                                         .f_max = 7600,
                                                         .power = 1,
                                                         .log = mel_log::none},
                                         log_mel_options{.sample_rate = 22'050,
                                                         .n_fft = 1024,
                                                         .hop = 256,
                                                         .scale = mel_scale::slaney,
                                                         .log = mel_log::base10,
                                                         .floor = 1e-5F}));

TEST(LogMel, FramesFirstIsTheTranspose) {
  const auto waveform = tensor_of(random_waveform(5'000, 7));
  const auto mels = log_mel()(waveform);
  const auto frames = log_mel({.frames_first = true})(waveform);
  ASSERT_EQ(mels.shape(), (dimensions{80, 32}));
  ASSERT_EQ(frames.shape(), (dimensions{32, 80}));
  for (std::int64_t m = 0; m < 80; ++m)
    for (std::int64_t f = 0; f < 32; ++f)
      ASSERT_EQ(mels.data<float>()[m * 32 + f], frames.data<float>()[f * 80 + m]);
}

TEST(LogMel, OfThirtySecondsWhisperHas3000Frames) {
  const auto mels = log_mel(whisper_options())(tensor_of(random_waveform(480'000, 7)));
  EXPECT_EQ(mels.shape(), (dimensions{80, 3000}));
}

TEST(LogMel, AChannelMayHaveADimension) {
  const auto samples = random_waveform(1'000, 7);
  const auto flat = log_mel()(tensor_of(samples));
  const tensor row(element_type::f32, {1, 1'000});
  std::copy(samples.begin(), samples.end(), row.data<float>());
  EXPECT_TRUE(std::equal(flat.data<float>(), flat.data<float>() + flat.spec().elements(),
                         log_mel()(row).data<float>()));
}

TEST(LogMel, WhatCannotWorkIsRefused) {
  const auto refused = [](const log_mel_options& options, const char* why) {
    EXPECT_THAT([&] { log_mel{options}; }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refused({.sample_rate = 0}, "sample_rate");
  refused({.n_fft = 0}, "n_fft");
  refused({.n_fft = 32'770}, "n_fft");
  refused({.n_fft = 401}, "n_fft");
  refused({.hop = 0}, "hop");
  refused({.n_mels = 0}, "n_mels");
  refused({.n_mels = 1025}, "n_mels");
  refused(whisper_options(0), "n_mels");
  refused({.f_max = 8001}, "f_max");
  refused({.f_min = 9000}, "f_min");
  refused({.power = 3}, "power");
  refused({.floor = 0}, "floor");
  refused({.floor = INFINITY}, "floor");
  refused({.floor = NAN}, "floor");
  refused({.scale = mel_scale{2}}, "scale is no value of mel_scale");
  refused({.log = mel_log{4}}, "log is no value of mel_log");
  EXPECT_THAT([] { log_mel()(tensor(element_type::f32, {200})); },
              ThrowsMessage<error>(HasSubstr("200 samples")));
  EXPECT_THAT([] { log_mel()(tensor(element_type::f32, {2, 1000})); },
              ThrowsMessage<error>(HasSubstr("f32[2, 1000]")));
  EXPECT_THAT([] { log_mel()(tensor(element_type::i16, {1000})); },
              ThrowsMessage<error>(HasSubstr("i16[1000]")));
}

}  // namespace lade::media::log_mel_test
