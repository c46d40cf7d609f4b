#include "gif_reader.hpp"
#include "colours.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace lade::media {

// The first image: its position on the screen, and its palette.
struct gif_reader::picture {
  std::size_t left = 0;
  std::size_t top = 0;
  std::size_t width = 0;
  std::size_t height = 0;
  bool interlaced = false;
  std::uint8_t unused = 0;  // index of the colour of the rest of the screen
  palette colours;
  std::size_t codes = 0;  // offset of its compressed pixels
};

// Reads the colour table at `at`, if `flags` announce one. Returns its end.
static std::size_t gif_palette(support::byte_view file, std::size_t at, unsigned flags,
                               palette& into) {
  if ((flags & 0x80) == 0) return at;
  const std::size_t count = std::size_t{2} << (flags & 7);
  for (std::size_t i = 0; i < count; ++i)
    into[i] = {file[at + 3 * i], file[at + 3 * i + 1], file[at + 3 * i + 2]};
  return at + 3 * count;
}

// Skips sub-blocks up to the empty one that ends them. Returns the offset after it.
static std::size_t gif_skip_blocks(support::byte_view file, std::size_t at) {
  while (const std::size_t length = file[at]) at += 1 + length;
  return at + 1;
}

std::optional<gif_reader::picture> gif_reader::find_picture(support::byte_view bytes) {
  constexpr unsigned extension = 0x21;
  constexpr unsigned graphic_control = 0xf9;
  constexpr unsigned descriptor = 0x2c;
  picture found;
  std::size_t at = gif_palette(bytes, 13, bytes[10], found.colours);
  for (; bytes[at] == extension; at = gif_skip_blocks(bytes, at + 2))
    if (bytes[at + 1] == graphic_control && (bytes[at + 3] & 1) != 0) found.unused = bytes[at + 6];
  if (bytes[at] != descriptor || !bytes.holds(at, 11)) return std::nullopt;
  found.left = bytes.little(at + 1, 2);
  found.top = bytes.little(at + 3, 2);
  found.width = bytes.little(at + 5, 2);
  found.height = bytes.little(at + 7, 2);
  found.interlaced = (bytes[at + 9] & 0x40) != 0;
  found.codes = gif_palette(bytes, at + 10, bytes[at + 9], found.colours);
  return found;
}

// Reads codes of 2 to 12 bits, low bit first.
class gif_codes {
 public:
  explicit gif_codes(support::byte_view data) : data_(data) {}

  // The next code of `bits` bits; -1 at the end of the data.
  int next(int bits) {
    for (; count_ < bits; count_ += 8) {
      if (at_ == data_.size()) return -1;
      held_ |= unsigned{data_[at_++]} << count_;
    }
    const unsigned code = held_ & ((1U << bits) - 1);
    held_ >>= bits;
    count_ -= bits;
    return static_cast<int>(code);
  }

 private:
  support::byte_view data_;
  std::size_t at_ = 0;
  unsigned held_ = 0;
  int count_ = 0;
};

// The strings of the LZW codes. Each extends the string of an earlier code by one byte.
class gif_strings {
 public:
  static constexpr int most = 4096;

  explicit gif_strings(int bits) : literals_(1 << bits) {
    for (int i = 0; i < literals_; ++i) {
      last_[std::size_t(i)] = first_[std::size_t(i)] = static_cast<std::uint8_t>(i);
      length_[std::size_t(i)] = 1;
    }
    clear();
  }

  void clear() noexcept { size_ = literals_ + 2; }
  int size() const noexcept { return size_; }
  bool holds(int code) const noexcept {
    return code < literals_ || (code > literals_ + 1 && code < size_);
  }

  // Adds a string: the string of `code` and the first byte of the string of `next`. `next` may be
  // the new code itself.
  void add(int code, int next) {
    if (size_ == most) return;
    const auto i = static_cast<std::size_t>(size_);
    const auto from = static_cast<std::size_t>(code);
    before_[i] = static_cast<std::uint16_t>(code);
    first_[i] = first_[from];
    length_[i] = static_cast<std::uint16_t>(length_[from] + 1);
    last_[i] = next == size_ ? first_[from] : first_[std::size_t(next)];
    ++size_;
  }

  // Writes the string of `code`, up to `room` bytes. Returns the number of bytes.
  std::size_t write(int code, std::uint8_t* out, std::size_t room) const {
    auto i = static_cast<std::size_t>(code);
    const std::size_t count = length_[i];
    for (std::size_t left = count; left-- > 0; i = before_[i])
      if (left < room) out[left] = last_[i];
    return std::min(count, room);
  }

 private:
  int literals_;
  int size_ = 0;
  std::array<std::uint16_t, most> before_;
  std::array<std::uint16_t, most> length_;
  std::array<std::uint8_t, most> first_;
  std::array<std::uint8_t, most> last_;
};

// Decodes LZW (GIF89a, appendix F) until `out` is full. Returns false if the data end early or are
// not LZW.
static bool gif_decode(support::byte_view data, int literal_bits, std::span<std::uint8_t> out) {
  const int clear = 1 << literal_bits;
  const int end = clear + 1;
  gif_codes codes(data);
  gif_strings strings(literal_bits);
  int bits = literal_bits + 1;
  int before = -1;
  for (std::size_t filled = 0; filled < out.size();) {
    const int code = codes.next(bits);
    if (code < 0 || code == end) return false;
    if (code == clear) {
      strings.clear();
      bits = literal_bits + 1;
      before = -1;
      continue;
    }
    const bool is_new = before >= 0 && code == strings.size();
    if (!is_new && !strings.holds(code)) return false;
    if (before >= 0) strings.add(before, code);
    if (!strings.holds(code)) return false;  // the table is full
    filled += strings.write(code, out.data() + filled, out.size() - filled);
    if (strings.size() == 1 << bits && bits < 12) ++bits;
    before = code;
  }
  return true;
}

// The position of the i-th stored row. Interlaced images have four passes (GIF89a, appendix E):
// from 0 every 8th row, from 4 every 8th, from 2 every 4th, from 1 every 2nd.
static std::size_t gif_row(std::size_t i, std::size_t height, bool interlaced) {
  if (!interlaced) return i;
  static constexpr std::size_t passes[][2] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  for (const auto& [first, step] : passes) {
    const auto rows = height > first ? (height - first + step - 1) / step : 0;
    if (i < rows) return first + i * step;
    i -= rows;
  }
  return 0;
}

std::pair<std::size_t, std::size_t> gif_reader::size_of(support::byte_view file) {
  const auto first = find_picture(file).value_or(picture());
  return {std::max<std::size_t>(file.little(6, 2), first.left + first.width),
          std::max<std::size_t>(file.little(8, 2), first.top + first.height)};
}

void gif_reader::open(const image_file& file) {
  const support::byte_view bytes(file.bytes);
  const auto found = find_picture(bytes);
  if (!found) throw_damaged(file, "GIF", "it has no image, or is cut off before it");
  const auto& first = *found;
  const auto [width, height] = size_of(bytes);
  set_shape(file, static_cast<std::int64_t>(width), static_cast<std::int64_t>(height), false);
  const auto* indices = decode(file, first);
  auto* frame = make_frame();
  const std::vector<std::uint8_t> free(width, first.unused);
  for (std::size_t y = 0; y < height; ++y)
    first.colours.look_up(free.data(), width, frame + y * frame_stride());
  for (std::size_t i = 0; i < first.height; ++i)
    first.colours.look_up(
        indices + i * first.width, first.width,
        frame + (first.top + gif_row(i, first.height, first.interlaced)) * frame_stride() +
            3 * first.left);
}

void gif_reader::close() noexcept {
  codes_.end_image();
  indices_.end_image();
  frame_reader::close();
}

// Decodes the indices of the pixels.
const std::uint8_t* gif_reader::decode(const image_file& file, const picture& first) {
  const support::byte_view bytes(file.bytes);
  const int literal_bits = bytes[first.codes];
  std::size_t count = 0;
  auto end = first.codes + 1;
  for (std::size_t length = bytes[end]; length > 0; length = bytes[end]) {
    count += length;
    end += 1 + length;
  }
  if (end >= bytes.size()) throw_damaged(file, "GIF", "its first image is cut off");
  auto* codes = codes_.reserve(count);
  auto* out = codes;
  for (auto at = first.codes + 1; at < end; at += 1 + std::size_t{bytes[at]})
    out = std::copy_n(bytes.data() + at + 1, bytes[at], out);
  const auto pixels = first.width * first.height;
  auto* indices = indices_.reserve(pixels);
  if (literal_bits < 1 || literal_bits > 8 ||
      !gif_decode(std::as_bytes(std::span(codes, count)), literal_bits, {indices, pixels}))
    throw_damaged(file, "GIF", "its first image has fewer pixels than it states");
  return indices;
}

}  // namespace lade::media
