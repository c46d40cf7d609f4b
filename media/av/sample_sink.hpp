// Collects converted audio, in memory that grows or in the slot of a batch.

#pragma once

#include <lade/buffer.hpp>
#include <lade/media/av/resampler.hpp>
#include <lade/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace lade::media {

// The output of an audio_converter: elements of is_sample_type(). One thread at a time.
class sample_sink {
 public:
  static constexpr int most_channels = 64;

  // A growing sink. Throws error(limit_exceeded), before it allocates memory, for more than `most`
  // samples per channel. `doing`: the operation, for errors.
  sample_sink(element_type type, audio_layout layout, std::int64_t most, std::string doing)
      : type_(type), layout_(layout), most_(most), doing_(std::move(doing)) {}

  // Fills a contiguous tensor, whose shape is the number of samples.
  sample_sink(const tensor& slot, audio_layout layout, std::string doing);

  element_type type() const noexcept { return type_; }
  audio_layout layout() const noexcept { return layout_; }
  std::int64_t samples() const noexcept { return samples_; }
  const std::string& doing() const noexcept { return doing_; }

  // Whether a slot has all its samples.
  bool is_full() const noexcept { return fixed_ && samples_ == capacity_; }

  // Sets the capacity of the first allocation, in samples per channel.
  void expect(std::int64_t samples) noexcept { expected_ = samples; }

  // Sets the number of channels. Call before the first samples, unless the sink is a slot.
  void set_channels(int channels);
  int channels() const noexcept { return channels_; }

  // Memory for the next samples: the address of each channel, or one address for interleaved
  // channels. The capacity is at least `samples`, except at the end of a slot.
  struct place {
    std::array<std::uint8_t*, most_channels> channels;
    std::int64_t capacity;
  };
  place reserve(std::int64_t samples);
  void commit(std::int64_t written) noexcept { samples_ += written; }

  // Fills the rest of the slot with silence.
  void pad() noexcept;

  // Returns all samples of a growing sink.
  tensor take() &&;

 private:
  std::size_t sample_bytes() const noexcept { return element_bytes(type_); }
  std::size_t row_bytes(std::int64_t samples) const noexcept;
  std::size_t rows() const noexcept;
  void grow(std::int64_t capacity);

  element_type type_;
  audio_layout layout_;
  std::int64_t expected_ = 0;
  std::int64_t most_ = 0;
  std::string doing_;
  bool fixed_ = false;
  int channels_ = 0;
  std::int64_t samples_ = 0;
  std::int64_t capacity_ = 0;
  buffer memory_;               // rows of `capacity_` samples: one per channel, or one if
                                // interleaved
  std::byte* first_ = nullptr;  // in memory_ or the slot
};

// Writes silence: 128 for u8, else zeros.
void write_silence(std::byte* to, std::size_t bytes, element_type type) noexcept;

// The shape of a tensor of audio.
dimensions audio_shape(audio_layout layout, std::int64_t channels, std::int64_t samples);

}  // namespace lade::media
