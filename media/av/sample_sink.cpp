#include "sample_sink.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

dimensions audio_shape(audio_layout layout, std::int64_t channels, std::int64_t samples) {
  if (layout == audio_layout::planar) return {channels, samples};
  return {samples, channels};
}

void write_silence(std::byte* to, std::size_t bytes, element_type type) noexcept {
  if (bytes > 0) std::memset(to, type == element_type::u8 ? 128 : 0, bytes);
}

sample_sink::sample_sink(const tensor& slot, audio_layout layout, std::string doing)
    : type_(slot.type()),
      layout_(layout),
      doing_(std::move(doing)),
      fixed_(true),
      channels_(static_cast<int>(slot.shape()[layout == audio_layout::planar ? 0 : 1])),
      capacity_(slot.shape()[layout == audio_layout::planar ? 1 : 0]),
      first_(slot.bytes()) {}

void sample_sink::set_channels(int channels) {
  if (channels < 1 || channels > most_channels)
    throw error(errc::unsupported, doing_, fmt::format("it has {} channels", channels));
  channels_ = channels;
}

std::size_t sample_sink::rows() const noexcept {
  return layout_ == audio_layout::planar ? static_cast<std::size_t>(channels_) : 1;
}

std::size_t sample_sink::row_bytes(std::int64_t samples) const noexcept {
  const auto side_by_side = static_cast<std::size_t>(channels_) / rows();
  return static_cast<std::size_t>(samples) * side_by_side * sample_bytes();
}

void sample_sink::grow(std::int64_t capacity) {
  auto larger = allocate_now(row_bytes(capacity) * rows());
  for (std::size_t i = 0; i < rows() && samples_ > 0; ++i)
    std::memcpy(larger.data() + i * row_bytes(capacity), first_ + i * row_bytes(capacity_),
                row_bytes(samples_));
  memory_ = std::move(larger);
  first_ = memory_.data();
  capacity_ = capacity;
}

sample_sink::place sample_sink::reserve(std::int64_t samples) {
  if (!fixed_ && samples > capacity_ - samples_) {
    if (samples > most_ - samples_)
      throw error(errc::limit_exceeded, doing_,
                  fmt::format("it has more than {} samples (max_samples)", most_));
    const auto least = samples_ + samples;
    grow(std::min(most_, std::max(least, capacity_ == 0 ? expected_ : 2 * capacity_)));
  }
  place next{.channels = {}, .capacity = capacity_ - samples_};
  for (std::size_t i = 0; i < rows(); ++i)
    next.channels[i] =
        reinterpret_cast<std::uint8_t*>(first_ + i * row_bytes(capacity_) + row_bytes(samples_));
  return next;
}

void sample_sink::pad() noexcept {
  for (std::size_t i = 0; i < rows(); ++i)
    write_silence(first_ + i * row_bytes(capacity_) + row_bytes(samples_),
                  row_bytes(capacity_ - samples_), type_);
  samples_ = capacity_;
}

tensor sample_sink::take() && {
  for (std::size_t i = 1; i < rows() && samples_ < capacity_; ++i)
    std::memmove(first_ + i * row_bytes(samples_), first_ + i * row_bytes(capacity_),
                 row_bytes(samples_));
  const tensor_spec spec{type_, audio_shape(layout_, channels_, samples_)};
  capacity_ = std::exchange(samples_, 0);
  return {spec, std::exchange(memory_, {}).slice(0, spec.bytes())};
}

}  // namespace lade::media
