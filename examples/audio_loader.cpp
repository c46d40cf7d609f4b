// audio_loader DIRECTORY [RATE [log-mel]]: turns a directory of audio files into batches of mono
// waveforms, or of log-mel spectrograms, and shows the speed and the bottleneck.
//
// RATE is in samples per second, 16,000 if not given. Files of about the same length share a batch,
// padded with zeros to its longest: at most 60 seconds of audio together. The pipeline is in
// load().

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/log_mel.hpp>

#include "progress.hpp"
#include "report.hpp"
#include "skipped.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// The options of the command line.
struct audio_settings {
  std::string directory;
  int rate = 16'000;
  bool mels = false;

  int samples_per_step() const { return mels ? rate / 100 : 1; }  // of the padded items
};

// A stage's function: the bytes of a file become the field "audio", f32 [samples, 1] or
// [frames, 80].
class decode_waveform {
 public:
  explicit decode_waveform(const audio_settings& settings)
      : decode_({.sample_rate = settings.rate,
                 .channels = 1,
                 .layout = lade::media::audio_layout::interleaved}) {
    if (settings.mels)
      mels_.emplace(lade::media::log_mel_options{.sample_rate = settings.rate,
                                                 .n_fft = settings.rate / 80 * 2,
                                                 .hop = settings.samples_per_step(),
                                                 .frames_first = true});
  }

  lade::sample operator()(lade::sample in) const {
    auto audio = decode_(in);
    if (mels_) audio = (*mels_)(audio);
    return std::move(in).without_data().with_field(lade::field("audio", std::move(audio)));
  }
  std::size_t memory_needed(const lade::sample& in) const { return decode_.memory_needed(in); }

 private:
  lade::media::decode_audio decode_;
  std::optional<lade::media::log_mel> mels_;
};

static std::int64_t length_of(const lade::sample& in) {
  return in.field("audio").tensor().shape()[0];
}

static std::vector<lade::sample> find_audio(const std::string& directory) {
  lade::io::labelled_files listing(directory, "**/*.{wav,flac,mp3,m4a,aac,ogg,opus}",
                                   {.ignore_case = true, .may_be_empty = true});
  auto files = listing.list_all();
  if (files.empty()) throw std::runtime_error(directory + ": no audio files in it or below it");
  return files;
}

static progress::status status_of(const lade::run_statistics& run, std::uint64_t files) {
  progress::status now;
  now.unit = "files";
  now.total = files;
  for (const auto& stage : run.stages) {
    if (stage.name == "read") now.bytes = stage.bytes;
    if (stage.name == "decode_waveform") now.items = stage.out + stage.skipped;
  }
  return now;
}

// The totals of the batches.
struct totals {
  std::uint64_t batches = 0;
  std::uint64_t files = 0;
  std::int64_t steps = 0;   // samples, or frames of spectrograms
  std::int64_t padded = 0;  // the same with padding

  void add(const lade::sample_batch& batch) {
    const auto& lengths = batch["audio.lengths"];
    ++batches;
    files += batch.size();
    padded += batch["audio"].shape()[0] * batch["audio"].shape()[1];
    for (std::size_t i = 0; i < batch.size(); ++i) steps += lengths.data<std::int64_t>()[i];
  }
};

static void print_totals(const totals& all, const lade::run_statistics& run,
                         const audio_settings& settings) {
  const double cpu_seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  const double seconds = std::chrono::duration<double>(run.elapsed).count();
  const double audio = static_cast<double>(all.steps) * settings.samples_per_step() / settings.rate;
  const double padding = 1 - static_cast<double>(all.steps) / static_cast<double>(all.padded);
  fmt::print("\n{}\n{}\n\n", lade::table(run), lade::verdict(run));
  print_row("files", fmt::format("{} in {}, {:.1f} s of audio", grouped(all.files),
                                 count_of(all.batches, "batch", "batches"), audio));
  print_row("padding", fmt::format("{:.1f} % of the batches", 100 * padding));
  print_row("speed", fmt::format("{:.0f} s of audio in a second", audio / seconds));
  print_row("CPU", fmt::format("{:.2f} s for 1,000 s of audio", 1000 * cpu_seconds / audio));
}

static void load(const audio_settings& settings) {
  const auto files = find_audio(settings.directory);
  const auto second = static_cast<std::size_t>(settings.rate / settings.samples_per_step());
  skipped without("", "file", "files");
  lade::runtime runtime;
  lade::bucket_options lengths{.boundaries = {second, 3 * second, 10 * second, 30 * second},
                               .padded = 60 * second};

  // clang-format off
  auto batches = lade::from(files)
      | lade::shuffle({.seed = 7})
      | lade::map(lade::io::read, {.concurrency = 64})
      | lade::map(decode_waveform(settings), {.on_error = lade::on_error::skip})
      | lade::bucket(length_of, lengths)
      | lade::pad({.fields = "audio"});
  // clang-format on

  lade::run_options run_options;
  run_options.on_failure = [&](auto& failure) { without.record(failure); };
  auto run = runtime.run(batches, run_options);
  totals all;
  {
    progress bar([&] { return status_of(run.statistics(), files.size()); });
    for (auto& batch : run) all.add(batch);  // a trainer would train here, on batch["audio"]
  }
  if (all.files > 0) print_totals(all, run.statistics(), settings);
  without.print();
  if (all.files == 0) throw std::runtime_error(settings.directory + ": no file could be used");
}

static int parse_rate(std::string_view text) {
  int rate = 0;
  const auto [end, failure] = std::from_chars(text.begin(), text.end(), rate);
  if (failure != std::errc() || end != text.end() || rate < 1'000)
    throw std::runtime_error("RATE must be a number of at least 1000, not " + std::string(text));
  return rate;
}

static audio_settings parse(int count, char** arguments) {
  audio_settings settings{.directory = arguments[1]};
  if (count > 2) settings.rate = parse_rate(arguments[2]);
  settings.mels = count > 3;
  return settings;
}

int main(int count, char** arguments) {
  if (count < 2 || count > 4 || (count == 4 && std::string_view(arguments[3]) != "log-mel")) {
    fmt::print(stderr, "usage: audio_loader DIRECTORY [RATE [log-mel]]\n");
    return 2;
  }
  try {
    load(parse(count, arguments));
    return 0;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "audio_loader: {}\n", lade::printable(failure.what()));
    return 1;
  }
}
