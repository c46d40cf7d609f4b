#include <lade/support/tiff_tags.hpp>

namespace lade::support {

tiff_tags::tiff_tags(byte_view file) : file_(file), high_first_(file.begins("MM")) {
  if (!high_first_ && !file.begins("II")) return;
  const auto version = number(2, 2);
  if (version != 42 && version != 43) return;
  wide_ = version == 43;
  const auto directory = wide_ ? number(8, 8) : number(4, 4);
  const std::size_t count_bytes = wide_ ? 8 : 2;
  if (directory > file.size()) return;
  entries_ = number(directory, count_bytes);
  first_ = directory + count_bytes;
}

tiff_tags::entry tiff_tags::entry_at(std::uint64_t i) const {
  static constexpr std::uint8_t bytes_of_type[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4,
                                                   8, 4, 8, 4, 0, 0, 8, 8, 8};
  const std::size_t offset_bytes = wide_ ? 8 : 4;
  const auto at = first_ + i * (4 + 2 * offset_bytes);
  entry found{.tag = static_cast<std::uint32_t>(number(at, 2)),
              .type = static_cast<std::uint32_t>(number(at + 2, 2)),
              .count = number(at + 4, offset_bytes)};
  const std::uint64_t size = found.type < std::size(bytes_of_type) ? bytes_of_type[found.type] : 0;
  found.bytes = found.count < file_.size() ? found.count * size : file_.size() * size + 1;
  found.at = at + 4 + offset_bytes;
  if (found.bytes > offset_bytes) found.at = number(found.at, offset_bytes);
  return found;
}

std::string_view tiff_tags::fault() const {
  constexpr std::string_view cut_off = "its directory is cut off";
  const std::size_t entry_bytes = wide_ ? 20 : 12;
  if (entries_ == 0 || first_ > file_.size() || entries_ > (file_.size() - first_) / entry_bytes)
    return cut_off;
  std::uint64_t left = 2 * file_.size();  // not 1: some writers share the bytes of equal values
  for (std::uint64_t i = 0; i < entries_; ++i) {
    const auto one = entry_at(i);
    if (!file_.holds(one.at, one.bytes)) return cut_off;
    if (one.bytes > left) return "the values of its tags overlap";
    left -= one.bytes;
  }
  return {};
}

unsigned tiff_tags::short_of(std::uint32_t tag) const {
  constexpr std::uint32_t unsigned_16_bits = 3;
  for (std::uint64_t i = 0; i < entries_; ++i) {
    const auto one = entry_at(i);
    if (one.type == 0) break;  // past the end of the file
    if (one.tag == tag)
      return one.type == unsigned_16_bits ? static_cast<unsigned>(number(one.at, 2)) : 0;
  }
  return 0;
}

std::uint64_t tiff_tags::number_of(std::uint32_t tag, std::uint64_t otherwise) const {
  for (std::uint64_t i = 0; i < entries_; ++i) {
    const auto one = entry_at(i);
    if (one.type == 0) break;
    if (one.tag != tag || one.count == 0) continue;
    switch (one.type) {
      case 1: return number(one.at, 1);
      case 3: return number(one.at, 2);
      case 4: return number(one.at, 4);
      case 16: return number(one.at, 8);
      default: return otherwise;
    }
  }
  return otherwise;
}

byte_view tiff_tags::bytes_of(std::uint32_t tag) const {
  for (std::uint64_t i = 0; i < entries_; ++i) {
    const auto one = entry_at(i);
    if (one.type == 0) break;
    if (one.tag == tag) return file_.part(one.at, one.bytes);
  }
  return {};
}

}  // namespace lade::support
