// The format of a file with the index of a video, version 1:
//
//   "LADEVIDX", u32 version
//   stream      see stored_stream.hpp
//   u64         length of the video's file
//   u8          1: packets have positions; 2: the video must be decoded from its beginning; else 0
//   u64         number of packets, and for each:
//     i64 pts, i64 dts (-2^63 if unknown), i64 duration, u64 position, u32 size, u8 flags: 1 key
//     frame, 2 shown
//   u64         number of frames of a video that must be decoded from its beginning, else 0, and
//               for each: i64 timestamp
//   u32         CRC-32C of everything before
//
// All numbers are little-endian.

#include "byte_output.hpp"
#include "stored_stream.hpp"

#include <lade/io/file.hpp>
#include <lade/media/av/packet_index.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace lade::media {

static constexpr std::string_view index_signature = "LADEVIDX";
static constexpr std::uint32_t index_version = 1;
static constexpr std::size_t indexed_packet_bytes = 4 * 8 + 4 + 1;

// Values of the byte after the file's length.
static constexpr std::uint8_t index_without_positions = 0;
static constexpr std::uint8_t index_with_positions = 1;
static constexpr std::uint8_t index_is_sequential = 2;

buffer packet_index::serialise() const {
  stored_writer to;
  store_stream(to, stream());
  to.number(file_bytes());
  to.number(is_sequential()   ? index_is_sequential
            : has_positions() ? index_with_positions
                              : index_without_positions);
  to.number(static_cast<std::uint64_t>(packets().size()));
  for (const auto& each : packets()) {
    to.number(each.pts);
    to.number(each.dts);
    to.number(each.duration);
    to.number(each.position);
    to.number(each.size);
    to.number(static_cast<std::uint8_t>((each.key ? 1 : 0) | (each.shown ? 2 : 0)));
  }
  to.number(static_cast<std::uint64_t>(is_sequential() ? size() : 0));
  for (std::int64_t i = 0; is_sequential() && i < size(); ++i) to.number(pts(i));
  return to.sealed(index_signature, index_version);
}

static indexed_packet load_indexed_packet(stored_reader& from) {
  indexed_packet entry;
  entry.pts = from.number<std::int64_t>();
  entry.dts = from.number<std::int64_t>();
  entry.duration = from.number<std::int64_t>();
  entry.position = from.number<std::uint64_t>();
  entry.size = from.number<std::uint32_t>(0, INT32_MAX - 64);
  const auto flags = from.number<std::uint8_t>(0, 3);
  entry.key = (flags & 1) != 0;
  entry.shown = (flags & 2) != 0;
  return entry;
}

packet_index packet_index::parse(const buffer& bytes, std::string_view name) {
  stored_reader from(bytes.bytes(), index_signature, index_version,
                     "parse the index " + std::string(name));
  auto stream = load_stream(from);
  const auto file_bytes = from.number<std::uint64_t>();
  const auto kind = from.number(index_without_positions, index_is_sequential);
  std::vector<indexed_packet> packets(from.count(indexed_packet_bytes));
  for (auto& each : packets) each = load_indexed_packet(from);
  std::vector<std::int64_t> times(from.count(sizeof(std::int64_t)));
  constexpr std::int64_t largest = std::int64_t{1} << 60;  // no overflow in arithmetic
  for (auto& each : times) each = from.number<std::int64_t>(-largest, largest);
  from.end();
  const bool sequential = kind == index_is_sequential;
  if (sequential ? times.empty() : std::ranges::none_of(packets, &indexed_packet::shown))
    from.refuse("it has no frames");
  if (sequential) return {std::move(stream), std::move(packets), std::move(times), file_bytes};
  if (!times.empty() || !packets_tell_frames(stream, packets))
    from.refuse("its packets do not determine its frames");
  return {std::move(stream), std::move(packets), kind == index_with_positions, file_bytes};
}

// A name that is unique per call, across processes and machines.
static std::string name_of_partial(const std::string& path) {
  static std::atomic<unsigned> count = 0;
  return fmt::format("{}.partial-{}-{}-{}", path, std::random_device()(), getpid(), ++count);
}

void save_index(const packet_index& index, const std::string& path) {
  const auto bytes = index.serialise();
  const auto partial = name_of_partial(behind_links(path));
  try {
    file_output file(path, partial);
    file.write(bytes.bytes(), 0);
    file.finish();
  } catch (...) {
    std::remove(partial.c_str());
    throw;
  }
}

task<packet_index> load_index(std::string path) {
  const auto bytes = co_await io::read_file(path);
  co_return packet_index::parse(bytes, path);
}

}  // namespace lade::media
