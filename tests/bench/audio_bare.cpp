// The floor of audio_bench: files to 16 kHz mono floats with libavcodec and libswresample, and
// .wav files of which only the header is parsed.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "bare_av.hpp"
#include "media.hpp"

extern "C" {
#include <libswresample/swresample.h>
}

namespace {

using resampler = std::unique_ptr<SwrContext, bench::free_with<swr_free>>;

constexpr int rate = 16000;

resampler resampler_of(const AVFrame& frame) {
  AVChannelLayout mono{}, layout = frame.ch_layout;
  av_channel_layout_default(&mono, 1);
  SwrContext* context = nullptr;
  bench::check_av(
      swr_alloc_set_opts2(&context, &mono, AV_SAMPLE_FMT_FLT, rate, &layout,
                          static_cast<AVSampleFormat>(frame.format), frame.sample_rate, 0, nullptr),
      "set up the resampler");
  bench::check_av(swr_init(context), "set up the resampler");
  return resampler(context);
}

// A sound in memory that is used again.
class sound {
 public:
  void load(const std::string& file) {
    samples_ = 0;
    resampler_.reset();
    bench::decode_all(file, AVMEDIA_TYPE_AUDIO, [&](const AVFrame& frame) {
      if (!resampler_) resampler_ = resampler_of(frame);
      append(const_cast<const std::uint8_t**>(frame.extended_data), frame.nb_samples);
    });
    append(nullptr, 0);
  }
  const float* data() const { return data_.data(); }
  std::size_t samples() const { return samples_; }

 private:
  void append(const std::uint8_t** in, int count) {
    auto room = static_cast<std::size_t>(swr_get_out_samples(resampler_.get(), count));
    if (data_.size() < samples_ + room) data_.resize(2 * (samples_ + room));
    auto* out = reinterpret_cast<std::uint8_t*>(data_.data() + samples_);
    int done = swr_convert(resampler_.get(), &out, static_cast<int>(room), in, count);
    samples_ += static_cast<std::size_t>(bench::check_av(done, "resample"));
  }

  resampler resampler_;
  std::vector<float> data_;
  std::size_t samples_ = 0;
};

struct settings {
  std::string file;
  std::string directory;
  std::size_t items;
  std::size_t threads;
  std::string dump;
};

bench::report sounds(const settings& with) {
  std::vector<sound> sounds(with.threads);
  auto taken = bench::time_items(with.items, with.threads, [&](std::size_t, std::size_t thread) {
    sounds[thread].load(with.file);
  });
  const auto& one = sounds[0];
  bench::dump(with.dump, one.data(), one.samples() * sizeof(float));
  double seconds = static_cast<double>(one.samples()) / rate * static_cast<double>(with.items);
  return bench::items_report("audio_bare", with.items, one.samples(), taken)
      .add("threads", with.threads)
      .add("audio_s_per_cpu_s", seconds / taken.cpu);
}

template <class T>
T load(const std::vector<char>& content, std::size_t offset) {
  T value;
  if (offset + sizeof value > content.size()) bench::fail("no samples in a .wav file");
  std::memcpy(&value, content.data() + offset, sizeof value);
  return value;
}

// Reads a .wav file of 16 bit and one channel; the number of its samples.
std::size_t read_wav(const std::string& path, std::vector<char>& content) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0 || ::fstat(file, &about) != 0) bench::fail(path);
  content.resize(static_cast<std::size_t>(about.st_size));
  if (::pread(file, content.data(), content.size(), 0) != about.st_size) bench::fail(path);
  ::close(file);
  std::size_t chunk = 12;
  while (load<std::uint32_t>(content, chunk) != 0x61746164)  // "data"
    chunk += 8 + load<std::uint32_t>(content, chunk + 4);
  return std::min<std::size_t>(load<std::uint32_t>(content, chunk + 4), content.size()) / 2;
}

bench::report wavs(const settings& with) {
  auto paths = bench::list_files(with.directory);
  std::vector<std::vector<char>> contents(with.threads);
  std::vector<std::size_t> samples(with.threads);
  auto taken = bench::time_items(with.items, with.threads, [&](std::size_t i, std::size_t thread) {
    samples[thread] = read_wav(paths[i % paths.size()], contents[thread]);
  });
  return bench::items_report("audio_bare", with.items, samples[0], taken)
      .add("threads", with.threads);
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "The floor of audio: libavcodec and libswresample.");
  settings with;
  with.file = options.text("file", "", "a sound, to become floats of 16 kHz and one channel");
  with.directory = options.text("dir", "build/media/wav-1s", ".wav files, if there is no --file");
  with.items = options.number("items", 1, "how many files");
  with.threads = options.number("threads", 1, "that decode files");
  with.dump = options.text("dump", "", "file to write the samples to");
  options.done();
  (with.file.empty() ? wavs : sounds)(with).print();
}
