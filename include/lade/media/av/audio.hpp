// Audio for training: from files to tensors with a chosen sample rate, channels and length.

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
  pad_or_crop,  // shorter audio is followed by silence; longer audio is cut at the end
  pad,          // shorter audio is followed by silence; longer audio is an error
  crop,         // longer audio is cut at the end; shorter audio is an error
  exact,        // audio of another length is an error
};

struct audio_options {
  // The field of a sample that is decoded; its data if empty. Also the name of the tensor in a
  // batch.
  std::string_view field = {};

  // The index of the audio stream in its file; empty: FFmpeg's choice. WAV has stream 0.
  std::optional<int> stream = {};

  // As in resample_options; 0 and empty: as in the file.
  int sample_rate = 0;
  int channels = 0;
  std::string_view channel_layout = {};

  audio_layout layout = audio_layout::planar;
  element_type type = element_type::f32;  // or f64, f16, bf16, u8, i16, i32

  // The window in seconds, relative to the first decoded sample, for any time of that sample in the
  // file. It includes the samples from the first one at or after `offset` to the last one before
  // the end. A window that exceeds the file is shortened. Resampling uses only samples of the
  // window.
  double offset = 0;
  double duration = std::numeric_limits<double>::infinity();

  // For training: a random window at or after `offset` that lies inside the file. In shorter files
  // the window begins at `offset`. Its length is `duration`, or that of `samples`.
  bool random_offset = false;

  // The number of samples of each channel of the result, which requires `channels`; 0: as many as
  // the window has.
  std::int64_t samples = 0;
  audio_fit fit = audio_fit::pad_or_crop;

  damage_policy damage = damage_policy::refuse;

  // Maximum number of samples of a channel of the result, checked before memory is allocated.
  std::int64_t max_samples = std::int64_t{1} << 28;
};

// Decodes audio files into tensors [channels, samples] or [samples, channels]. Small and copyable.
// Any number of threads may use it at a time.
//
// - WAV with PCM or floats is converted by lade itself. A header that states more data than the
//   file has is an error. If damage is tolerated, the existing data is decoded, and counted as
//   one damage.
// - All other files are decoded by FFmpeg: the stream that `stream` names, or the best audio
//   stream. The container is detected by the first bytes, never by the name.
// - Integers become floats in [-1, 1). The samples are those of the ffmpeg program with `-ar`,
//   `-ac` and the encoder `pcm_` of the type, bit for bit. f16 and bf16 are rounded from f32 to
//   nearest. Silence is 128 for u8, and 0 for other types.
// - A window is a slice of all samples; docs/guides/frame-accuracy.md lists codecs with
//   differences.
// - For the codecs and containers on that page, windows are found by times, and decoded from
//   shortly before the window. For all others, windows are found by counting samples from the
//   beginning of the file, which is exact but slower.
// - MPEG-TS and Ogg files of joined parts are also decoded from the beginning. If the sample rate
//   changes, a window after the change is error(unsupported). Large files behind a reader are
//   refused as in demuxer.hpp, unless the window is at the beginning.
// - A random window requires the number of samples. MP4, FLAC and WAV state it. In other files,
//   the packets are counted, for which a reader's whole file is read. Codecs that are not on that
//   page, and files of joined parts, are decoded to count.
//
// Errors name the sample:
// - invalid_data: damage, with the decoder's reason; no audio stream; no samples in the window; a
//   length that `fit` does not allow
// - unsupported
// - limit_exceeded: max_samples, or rates that differ by more than a factor of 256
// - invalid_argument: a slot of another spec, a sample that has not been read, a `stream` that
//   the file does not have or that is not audio
class decode_audio {
 public:
  // Throws error(invalid_argument) naming an invalid option.
  explicit decode_audio(const audio_options& options = {});

  const audio_options& options() const noexcept { return options_; }

  // The field that is decoded; empty if it is the sample's data.
  std::string_view field() const noexcept { return options_.field; }

  // The spec of the tensor of a file: f32 [1, 16000]. Channels and samples are 0 if they depend on
  // the file.
  const tensor_spec& spec() const noexcept { return spec_; }

  // Whether the result depends on `draw`.
  bool is_random() const noexcept { return options_.random_offset; }

  // Number of damaged packets and frames, and missing ends of files, that this object and its
  // copies tolerated. Any thread.
  std::uint64_t damaged() const noexcept { return damaged_->load(std::memory_order_relaxed); }

  // Decodes the sample's data, or its field, into `slot`, a contiguous tensor of spec(), which
  // requires `samples`. `draw` determines the random window. A failure may leave part of the audio
  // in the slot.
  void operator()(const sample& in, const tensor& slot, random draw = {}) const;

  // The same into a new tensor, in memory of the run; outside of a stage, in newly allocated
  // memory.
  tensor operator()(const sample& in, random draw = {}) const;

  // Reads and decodes the audio of a reader. For a window of a large file, only the required
  // packets are read if the container allows it; otherwise all bytes. Decodes on a thread of the
  // CPU pool if there is a runtime. In a run, memory for the result counts to the budget. Throws as
  // the reader does, the errors above naming the reader, and error(stopped) if the caller is
  // cancelled, also between frames.
  task<tensor> read(std::shared_ptr<const byte_reader> from, random draw = {}) const;

  // For stages, which reserve memory before a call: the bytes that decoding needs besides the slot,
  // and together with the tensor. A tensor whose size is unknown before decoding counts as 0.
  std::size_t memory_to_write(const sample& in) const;
  std::size_t memory_needed(const sample& in) const;

 private:
  struct texts;

  std::shared_ptr<const texts> texts_;  // the strings of options_
  audio_options options_;
  tensor_spec spec_;
  std::shared_ptr<std::atomic<std::uint64_t>> damaged_;
};

// Returns the audio of a file, of an object behind a URL whose store is mounted, or of a reader:
//
//   const lade::media::audio_options how{.sample_rate = 16000, .channels = 1};
//   auto speech = co_await lade::media::load_audio("a.flac", how);
//
// The same as decode_audio(options).read(...). Files require a runtime.
task<tensor> load_audio(std::string path, const audio_options& options = {}, random draw = {});
task<tensor> load_audio(std::shared_ptr<const byte_reader> from, const audio_options& options = {},
                        random draw = {});

}  // namespace lade::media
