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

bench::report sounds(const settings& with) {
  constexpr int rate = 16000;
  const lade::media::decode_audio decode({.sample_rate = rate, .channels = 1});
  std::vector<lade::tensor> sounds(with.threads);
  auto taken = bench::time_items(with.items, with.threads, [&](std::size_t, std::size_t thread) {
    sounds[thread] = decode(load(with.file));
  });
  const auto& one = sounds[0];
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
