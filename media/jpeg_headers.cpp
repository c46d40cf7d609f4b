#include "jpeg_headers.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace lade::media {

// Reads one marker segment. A read past its end returns zeros and makes it bad.
class jpeg_segment {
 public:
  explicit jpeg_segment(std::span<const std::uint8_t> bytes) noexcept : bytes_(bytes) {}

  bool bad() const noexcept { return bad_; }
  bool empty() const noexcept { return bytes_.empty(); }
  bool begins(std::string_view text) const noexcept {
    return bytes_.size() >= text.size() && std::equal(text.begin(), text.end(), bytes_.begin());
  }
  std::uint8_t at(std::size_t i) const noexcept { return i < bytes_.size() ? bytes_[i] : 0; }

  std::span<const std::uint8_t> take(std::size_t count) noexcept {
    if (count > bytes_.size()) {
      bad_ = true;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  int byte() noexcept {
    const auto taken = take(1);
    return taken.empty() ? 0 : taken[0];
  }
  int word() noexcept {
    const int high = byte();
    return high << 8 | byte();
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool bad_ = false;
};

// Parses the segments in the order of the file. Each read_ function returns whether the segment is
// supported.
class jpeg_header_parser {
 public:
  explicit jpeg_header_parser(std::span<const std::uint8_t> file) noexcept : file_(file) {}

  std::optional<jpeg_headers> parse() {
    if (file_.size() < 4 || file_[0] != 0xff || file_[1] != 0xd8) return std::nullopt;
    for (std::size_t at = 2;;) {
      if (at + 4 > file_.size() || file_[at] != 0xff) return std::nullopt;
      const int marker = file_[at + 1];
      const std::size_t length = std::size_t(file_[at + 2]) << 8 | file_[at + 3];
      if (length < 2 || length > file_.size() - at - 2) return std::nullopt;
      jpeg_segment segment(file_.subspan(at + 4, length - 2));
      at += 2 + length;
      if (!read(marker, segment) || segment.bad()) return std::nullopt;
      if (marker != sos) continue;
      decide_colours();
      headers_.scan = at;
      return headers_;
    }
  }

 private:
  static constexpr int sof0 = 0xc0, sof1 = 0xc1, dht = 0xc4, sos = 0xda, dqt = 0xdb, dri = 0xdd,
                       app0 = 0xe0, app14 = 0xee, app15 = 0xef, com = 0xfe;

  struct frame_component {
    int id = 0;
    int across = 0;
    int down = 0;
    std::size_t quantisation = 0;
  };

  bool read(int marker, jpeg_segment& segment) {
    switch (marker) {
      case sof0:
      case sof1: return read_frame(segment);
      case dht: return read_codes(segment);
      case dqt: return read_quantisation(segment);
      case dri: return read_restarts(segment);
      case sos: return read_scan(segment);
      case app0: return read_jfif(segment);
      case app14: return read_adobe(segment);
      default: return (app0 < marker && marker <= app15) || marker == com;
    }
  }

  bool read_frame(jpeg_segment& segment) {
    if (headers_.count != 0 || segment.byte() != 8) return false;
    headers_.height = segment.word();
    headers_.width = segment.word();
    headers_.count = segment.byte();
    if (headers_.count != 1 && headers_.count != 3) return false;
    for (auto& component : frame_components()) {
      component.id = segment.byte();
      const int factors = segment.byte();
      component.across = factors >> 4;
      component.down = factors & 15;
      component.quantisation = static_cast<std::size_t>(segment.byte());
      if (component.quantisation >= quantisation_.size()) return false;
    }
    constexpr int libjpegs_most = 65500;
    return segment.empty() && headers_.width > 0 && headers_.height > 0 &&
           headers_.width <= libjpegs_most && headers_.height <= libjpegs_most && decide_sampling();
  }

  // A single component is not interleaved, whatever its sampling factors: an MCU is one block
  // (T.81, A.2.2).
  bool decide_sampling() {
    const auto& first = frame_[0];
    if (headers_.count == 1) {
      headers_.mcu_rows_per_group = first.down;
      return between_1_and_4(first.across) && between_1_and_4(first.down);
    }
    for (const auto& other : {frame_[1], frame_[2]})
      if (other.across != 1 || other.down != 1 || other.id == first.id) return false;
    if (frame_[1].id == frame_[2].id) return false;
    headers_.across = first.across;
    headers_.down = first.down;
    return (first.across == 4 && first.down == 1) ||
           (1 <= first.across && first.across <= 2 && 1 <= first.down && first.down <= 2);
  }
  static bool between_1_and_4(int factor) noexcept { return 1 <= factor && factor <= 4; }

  bool read_codes(jpeg_segment& segment) {
    while (!segment.empty()) {
      const int index = segment.byte();
      const std::size_t number = index & 15;
      if (index > 0x1f || number >= dc_.size()) return false;
      const auto counts = segment.take(16);
      const int total = std::accumulate(counts.begin(), counts.end(), 0);
      if (total > 256) return false;
      auto& code = index >> 4 != 0 ? ac_[number] : dc_[number];
      code = {.counts = counts, .symbols = segment.take(static_cast<std::size_t>(total))};
      if (segment.bad()) return false;
    }
    return true;
  }

  bool read_quantisation(jpeg_segment& segment) {
    while (!segment.empty()) {
      const auto number = static_cast<std::size_t>(segment.byte());  // above 15: 16-bit values
      if (number >= quantisation_.size()) return false;
      for (const auto index : jpeg_zigzag)
        quantisation_[number][index] = static_cast<std::int16_t>(segment.byte());
      has_quantisation_[number] = true;
    }
    return true;
  }

  bool read_restarts(jpeg_segment& segment) {
    headers_.restart_interval = segment.word();
    return segment.empty();
  }

  bool read_jfif(jpeg_segment& segment) {
    if (!segment.begins({"JFIF\0", 5})) return true;
    jfif_ = true;
    constexpr std::size_t size = 14;
    return segment.at(5) == 1 && segment.take(size).size() == size;  // version 1
  }

  bool read_adobe(jpeg_segment& segment) {
    if (!segment.begins("Adobe")) return true;
    const auto bytes = segment.take(12);
    if (bytes.empty()) return false;
    adobe_ = bytes[11];
    return *adobe_ <= 1;
  }

  bool read_scan(jpeg_segment& segment) {
    if (headers_.count == 0 || segment.byte() != headers_.count) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(headers_.count); ++i) {
      if (segment.byte() != frame_[i].id) return false;
      const int codes = segment.byte();
      const auto dc = static_cast<std::size_t>(codes >> 4),
                 ac = static_cast<std::size_t>(codes & 15);
      const auto table = frame_[i].quantisation;
      if (dc >= dc_.size() || ac >= ac_.size() || !has_quantisation_[table]) return false;
      if (dc_[dc].counts.empty() || ac_[ac].counts.empty()) return false;
      headers_.components[i] = {.quantisation = quantisation_[table], .dc = dc_[dc], .ac = ac_[ac]};
    }
    return segment.byte() == 0 && segment.byte() == 63 && segment.byte() == 0 && segment.empty();
  }

  // As in libjpeg (jdapimin.c, default_decompress_parms).
  void decide_colours() noexcept {
    if (headers_.count == 1 || jfif_) return;
    const bool named = frame_[0].id == 'R' && frame_[1].id == 'G' && frame_[2].id == 'B';
    headers_.rgb = adobe_ ? *adobe_ == 0 : named;
  }

  std::span<frame_component> frame_components() noexcept {
    return std::span(frame_).first(static_cast<std::size_t>(headers_.count));
  }

  std::span<const std::uint8_t> file_;
  jpeg_headers headers_;
  std::array<frame_component, 3> frame_;
  std::array<huffman_code, 4> dc_;
  std::array<huffman_code, 4> ac_;
  std::array<std::array<std::int16_t, 64>, 4> quantisation_{};
  std::array<bool, 4> has_quantisation_{};
  bool jfif_ = false;
  std::optional<int> adobe_;  // its colour transform
};

std::optional<jpeg_headers> read_jpeg_headers(std::span<const std::byte> file) {
  return jpeg_header_parser({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()})
      .parse();
}

unsigned jpeg_headers::restarts() const noexcept {
  if (restart_interval == 0) return 0;
  return static_cast<unsigned>((columns() * rows() - 1) / restart_interval);
}

// A coefficient takes a code and a value of up to 16 bits each. Every byte may be followed by a
// stuffed zero. Each segment pads its last byte and ends with a marker.
std::size_t jpeg_headers::most_scan_bytes() const noexcept {
  constexpr std::size_t of_block = std::size_t{2} * 64 * (16 + 16) / 8;
  constexpr std::size_t of_segment = 4;
  const auto mcus = static_cast<std::size_t>(columns()) * static_cast<std::size_t>(rows());
  return mcus * static_cast<std::size_t>(blocks()) * of_block +
         (std::size_t{restarts()} + 1) * of_segment;
}

}  // namespace lade::media
