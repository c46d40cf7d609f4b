// lade doing what audio_bare does, with the same options.

#include <lade/media/av/audio.hpp>

#include <vector>

#include "media.hpp"

namespace {

lade::sample load(const std::string& path) {
  return lade::sample(path).with_data(bench::load<lade::buffer>(path));
}

struct settings {
  std::string file;
  std::string directory;
  std::size_t items;
  std::size_t threads;
  std::string dump;
};

constexpr int rate = 16000;

// The file and the sound of a thread, in memory that is used again, as a run's pool does.
class sound {
 public:
  explicit sound(const std::string& file)
      : content_(bench::load<lade::buffer>(file)),
        decode_(options_for(natural_length())),
        samples_(decode_.spec()) {}

  const lade::tensor& load(const std::string& file) {
    bench::load_again(file, content_);
    decode_(lade::sample(file).with_data(content_), samples_);
    return samples_;
  }
  const lade::tensor& samples() const { return samples_; }

 private:
  static lade::media::audio_options options_for(std::int64_t samples) {
    return {.sample_rate = rate,
            .channels = 1,
            .samples = samples,
            .fit = lade::media::audio_fit::pad_or_crop};
  }
  std::int64_t natural_length() const {
    return lade::media::decode_audio(options_for(0))(lade::sample("sound").with_data(content_))
        .shape()[1];
  }

  lade::buffer content_;
  lade::media::decode_audio decode_;
  lade::tensor samples_;
};

bench::report sounds(const settings& with) {
  std::vector<sound> sounds;
  for (std::size_t i = 0; i < with.threads; ++i) sounds.emplace_back(with.file);
  auto taken = bench::time_items(with.items, with.threads, [&](std::size_t, std::size_t thread) {
    sounds[thread].load(with.file);
  });
  const auto& one = sounds[0].samples();
  bench::dump(with.dump, one.bytes(), one.spec().bytes());
  const auto samples = static_cast<std::size_t>(one.shape()[1]);
  double seconds = static_cast<double>(samples) / rate * static_cast<double>(with.items);
  return bench::items_report("audio_bench", with.items, samples, taken)
      .add("threads", with.threads)
      .add("audio_s_per_cpu_s", seconds / taken.cpu);
}

// The samples as they are stored, as the floor and SPDL's load_wav have them.
bench::report wavs(const settings& with) {
  auto paths = bench::list_files(with.directory);
  const lade::media::decode_audio decode({.type = lade::element_type::i16});
  std::vector<std::size_t> samples(with.threads);
  auto taken = bench::time_items(with.items, with.threads, [&](std::size_t i, std::size_t thread) {
    samples[thread] = static_cast<std::size_t>(decode(load(paths[i % paths.size()])).shape()[1]);
  });
  return bench::items_report("audio_bench", with.items, samples[0], taken)
      .add("threads", with.threads);
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade: audio.");
  settings with;
  with.file = options.text("file", "", "a sound, to become floats of 16 kHz and one channel");
  with.directory = options.text("dir", "build/media/wav-1s", ".wav files, if there is no --file");
  with.items = options.number("items", 1, "how many files");
  with.threads = options.number("threads", 1, "that decode files");
  with.dump = options.text("dump", "", "file to write the samples to");
  options.done();
  (with.file.empty() ? wavs : sounds)(with).print();
}
