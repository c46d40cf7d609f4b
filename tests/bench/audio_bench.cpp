// lade doing what audio_bare does, with the same options, on one thread.

#include <lade/media/av/audio.hpp>

#include "media.hpp"

namespace {

lade::sample load(const std::string& path) {
  return lade::sample(path).with_data(bench::load<lade::buffer>(path));
}

bench::report sounds(const std::string& file, std::size_t items, const std::string& dump) {
  constexpr int rate = 16000;
  const lade::media::decode_audio decode({.sample_rate = rate, .channels = 1});
  lade::tensor one;
  auto taken = bench::time_items(items, [&](std::size_t) { one = decode(load(file)); });
  bench::dump(dump, one.bytes(), one.spec().bytes());
  const auto samples = static_cast<std::size_t>(one.shape()[1]);
  double seconds = static_cast<double>(samples) / rate * static_cast<double>(items);
  return bench::items_report("audio_bench", items, samples, taken)
      .add("audio_s_per_cpu_s", seconds / taken.cpu);
}

// The samples as they are stored, as the floor and SPDL's load_wav have them.
bench::report wavs(const std::string& directory, std::size_t items) {
  auto paths = bench::list_files(directory);
  const lade::media::decode_audio decode({.type = lade::element_type::i16});
  std::size_t samples = 0;
  auto taken = bench::time_items(items, [&](std::size_t i) {
    samples = static_cast<std::size_t>(decode(load(paths[i % paths.size()])).shape()[1]);
  });
  return bench::items_report("audio_bench", items, samples, taken);
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade: audio on one thread.");
  auto file = options.text("file", "", "a sound, to become floats of 16 kHz and one channel");
  auto directory = options.text("dir", "build/media/wav-1s", ".wav files, if there is no --file");
  auto items = options.number("items", 1, "how many files");
  auto dump = options.text("dump", "", "file to write the samples to");
  options.done();
  (file.empty() ? wavs(directory, items) : sounds(file, items, dump)).print();
}
