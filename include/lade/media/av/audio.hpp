// Audio for training: files to tensors, with a sample rate, channels and a length of choice.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/resampler.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lade::media {

// How audio is fitted to a fixed number of samples.
enum class audio_fit : std::uint8_t {
  pad_or_crop,  // silence behind shorter audio; only the beginning of longer audio
  pad,          // silence behind shorter audio; longer audio is an error
  crop,         // only the beginning of longer audio; shorter audio is an error
  exact,        // audio of another length is an error
};

struct audio_options {
  // The field of a sample that is decoded; its data if empty. Names the tensor of a batch.
  std::string_view field = {};

  // The index of the audio stream in its file; FFmpeg's choice of one if empty. WAV has stream 0.
  std::optional<int> stream = {};

  // As in resample_options; 0 and empty: the file's own.
  int sample_rate = 0;
  int channels = 0;
  std::string_view channel_layout = {};

  audio_layout layout = audio_layout::planar;
  element_type type = element_type::f32;  // or f64, f16, bf16, u8, i16, i32

  // The window, in seconds from the first decoded sample on, whatever time the file gives that:
  // from the file's first sample at or behind `offset` to its last one before the end. It may end
  // behind the end of the file, where it is shorter. Resampling knows nothing of what is outside of
  // it.
  double offset = 0;
  double duration = std::numeric_limits<double>::infinity();

  // For training: the window begins anywhere at or after `offset` so that all of it is in the file;
  // at `offset` in shorter files. Its duration is `duration`, or that of `samples`.
  bool random_offset = false;

  // The number of samples of each channel of the result, which needs `channels`; 0: as many as the
  // window has.
  std::int64_t samples = 0;
  audio_fit fit = audio_fit::pad_or_crop;

  damage_policy damage = damage_policy::refuse;

  // The most samples a channel of the result may have; checked before memory is allocated.
  std::int64_t max_samples = std::int64_t{1} << 28;
};

// Decodes audio files into tensors [channels, samples] or [samples, channels]. Small, copyable, and
// usable by any number of threads at a time.
//
// - WAV with PCM or floats is converted by lade itself. A header that claims more data than there
//   are is an error. If damage is tolerated, what there is is decoded, and counted as one damage.
// - Everything else is decoded by FFmpeg: the stream that `stream` names, or the best audio stream.
//   The container is detected by the first bytes, never by the name.
// - Integers become floats in [-1, 1). The samples are those of the ffmpeg program with `-ar`,
//   `-ac` and the encoder `pcm_` of the type, bit for bit. f16 and bf16 are rounded from f32 to
//   nearest. Silence is 128 for u8, else 0.
// - A window is a slice of all samples; docs/guides/frame-accuracy.md lists codecs with differences.
// - Windows of codecs and containers that this page lists are found by times, and decoded from
//   shortly before them. Windows of all others are found by counting samples from the beginning of
//   the file, which is exact and takes longer.
// - MPEG-TS and Ogg files of joined parts are decoded from the beginning, too. If the sample rate
//   changes, a window behind that is error(unsupported). Large files behind a reader are refused as
//   demuxer.hpp says, unless the window is at the beginning.
// - A random window needs the number of samples. MP4, FLAC and WAV state it. Of other files, the
//   packets are counted, for which a reader's whole file is read. Codecs outside of that list, and
//   files of joined parts, are decoded to count.
//
// Errors name the sample: invalid_data (damage, with the decoder's reason, no audio stream, no
// samples in the window, another length than `fit` allows), unsupported, limit_exceeded
// (max_samples, rates that differ by more than a factor of 256), invalid_argument (a slot of
// another spec, a sample that has not been read, a `stream` that the file does not have or that is
// not audio).
class decode_audio {
 public:
  // Throws error(invalid_argument) naming an option that cannot work.
  explicit decode_audio(const audio_options& options = {});

  const audio_options& options() const noexcept { return options_; }

  // The field that is decoded; empty if it is the sample's data.
  std::string_view field() const noexcept { return options_.field; }

  // The tensor of one file: f32 [1, 16000]. Channels and samples are 0 if they are the file's.
  const tensor_spec& spec() const noexcept { return spec_; }

  // Whether the result depends on `draw`.
  bool is_random() const noexcept { return options_.random_offset; }

  // How many damaged packets and frames, and missing ends of files, this object and its copies have
  // tolerated. Any thread.
  std::uint64_t damaged() const noexcept { return damaged_->load(std::memory_order_relaxed); }

  // Decodes the sample's data, or its field, into `slot`, a contiguous tensor of spec(), which
  // needs `samples`. `draw` decides the random window. A failure may leave part of the audio there.
  void operator()(const sample& in, const tensor& slot, random draw = {}) const;

  // The same into a tensor of the run's memory; into fresh memory outside of a stage.
  tensor operator()(const sample& in, random draw = {}) const;

  // Reads and decodes the audio of a reader. Of a window of a large file, only the packets that it
  // needs are read, if the container allows that; otherwise all bytes. Decodes on a thread of the
  // CPU pool if there is a runtime. In a run, memory for the result is charged to the budget.
  // Throws what the reader throws, the errors above, which name the reader, and error(stopped) if
  // the caller is cancelled, also between frames.
  task<tensor> read(std::shared_ptr<const byte_reader> from, random draw = {}) const;

  // For stages, which reserve memory before a call: what decoding takes besides the slot, and
  // together with the tensor. A tensor whose size only decoding tells counts as 0.
  std::size_t memory_to_write(const sample& in) const;
  std::size_t memory_needed(const sample& in) const;

 private:
  struct texts;

  std::shared_ptr<const texts> texts_;  // what options_ refers to
  audio_options options_;
  tensor_spec spec_;
  std::shared_ptr<std::atomic<std::uint64_t>> damaged_;
};

// The audio of a file, an object behind a URL whose store is mounted, or a reader:
//
//   auto speech = co_await lade::media::load_audio("a.flac", {.sample_rate = 16000, .channels =
//   1});
//
// The same as decode_audio(options).read(...). Files need a runtime.
task<tensor> load_audio(std::string path, const audio_options& options = {}, random draw = {});
task<tensor> load_audio(std::shared_ptr<const byte_reader> from, const audio_options& options = {},
                        random draw = {});

}  // namespace lade::media
