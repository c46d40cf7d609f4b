#include <lade/error.hpp>
#include <lade/media/av/packet.hpp>

#include "stream_fields.hpp"

#include <fmt/format.h>

extern "C" {
#include <libavcodec/avcodec.h>
}

namespace lade::media {

static std::optional<std::int64_t> stated_timestamp(std::int64_t timestamp) noexcept {
  if (timestamp == AV_NOPTS_VALUE) return std::nullopt;
  return timestamp;
}

packet::packet(av_packet from) {
  check_av(av_packet_make_refcounted(from.get()), "own the bytes of a packet");
  packet_ = std::shared_ptr<const AVPacket>(from.release(), av_deleter());
}

std::span<const std::byte> packet::data() const noexcept {
  return std::as_bytes(std::span(packet_->data, static_cast<std::size_t>(packet_->size)));
}

std::optional<std::int64_t> packet::pts() const noexcept { return stated_timestamp(packet_->pts); }
std::optional<std::int64_t> packet::dts() const noexcept { return stated_timestamp(packet_->dts); }
std::int64_t packet::duration() const noexcept { return packet_->duration; }
bool packet::is_key() const noexcept { return (packet_->flags & AV_PKT_FLAG_KEY) != 0; }
bool packet::is_discarded() const noexcept { return (packet_->flags & AV_PKT_FLAG_DISCARD) != 0; }

std::optional<std::uint64_t> packet::position() const noexcept {
  if (packet_->pos < 0) return std::nullopt;
  return static_cast<std::uint64_t>(packet_->pos);
}

packet packet::clone() const {
  av_packet copy(check_av(av_packet_clone(packet_.get())));
  check_av(av_packet_make_writable(copy.get()), "copy a packet");
  return packet(std::move(copy));
}

packets::packets(stream_info stream, std::vector<packet> all, time_window window)
    : stream_(std::move(stream)), all_(std::move(all)), window_(window) {}

std::size_t packets::data_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& each : all_) bytes += each.data().size();
  return bytes;
}

std::size_t memory_of(const AVPacket& packet) noexcept {
  auto bytes = packets::packet_bytes + static_cast<std::size_t>(packet.size);
  for (int i = 0; i < packet.side_data_elems; ++i) bytes += packet.side_data[i].size;
  return bytes;
}

std::size_t packets::memory_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& each : all_) bytes += memory_of(each.get());
  return bytes;
}

packets packets::slice(std::size_t first, std::size_t count) const {
  if (first > size() || count > size() - first)
    throw error(errc::invalid_argument, fmt::format("slice {} packets at {}", count, first),
                fmt::format("there are {}", size()));
  packets part = *this;
  const auto begin = all_.begin() + static_cast<std::ptrdiff_t>(first);
  part.all_.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  return part;
}

packets packets::clone() const {
  packets copy = *this;
  for (auto& each : copy.all_) each = each.clone();
  copy.charges_.clear();
  copy.attach(memory_charge(copy.memory_bytes()));
  return copy;
}

void packets::attach(memory_charge charged) {
  if (charged.bytes() > 0)
    charges_.push_back(std::make_shared<const memory_charge>(std::move(charged)));
}

}  // namespace lade::media
