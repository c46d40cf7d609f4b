#include "pnm_reader.hpp"

#include <algorithm>
#include <cctype>

namespace lade::media {

std::int64_t pnm_reader::number(support::byte_view file, std::size_t& at) {
  for (; std::isspace(file[at]) != 0 || file[at] == '#'; ++at)
    if (file[at] == '#')
      while (at < file.size() && file[at] != '\n') ++at;
  std::int64_t value = 0;
  for (; std::isdigit(file[at]) != 0 && value < 1'000'000'000; ++at)
    value = 10 * value + file[at] - '0';
  return value;
}

// A sample as 8 bits. `most`: the value of white.
static std::uint8_t pnm_byte(std::int64_t value, std::int64_t most) {
  if (most == 65535) return static_cast<std::uint8_t>(value >> 8);
  return static_cast<std::uint8_t>((std::min(value, most) * 255 + most / 2) / most);
}

void pnm_reader::open(const image_file& file) {
  const support::byte_view bytes(file.bytes);
  const bool bits = bytes[1] == '4';
  std::size_t at = 2;
  const auto columns = number(bytes, at);
  const auto rows = number(bytes, at);
  const auto most = bits ? 1 : number(bytes, at);
  ++at;  // a single blank precedes the pixels
  set_shape(file, columns, rows, bytes[1] != '6');
  if (most < 1 || most > 65535) throw_damaged(file, "PNM", "its largest value is out of range");
  const std::size_t sample_bytes = most > 255 ? 2 : 1;
  const auto row_bytes = bits ? (frame_stride() + 7) / 8 : frame_stride() * sample_bytes;
  if (!bytes.holds(at, row_bytes * static_cast<std::size_t>(rows)))
    throw_damaged(file, "PNM", "it is cut off");
  auto* out = make_frame();
  for (std::size_t y = 0; y < static_cast<std::size_t>(rows); ++y) {
    const auto row = bytes.part(at + y * row_bytes, row_bytes);
    for (std::size_t i = 0; i < frame_stride(); ++i, ++out)
      *out =
          bits ? ((row[i / 8] >> (7 - i % 8) & 1) != 0 ? 0 : 255)
               : pnm_byte(static_cast<std::int64_t>(row.big(i * sample_bytes, sample_bytes)), most);
  }
}

}  // namespace lade::media
