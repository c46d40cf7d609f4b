#include "jpeg_header.hpp"

#include <lade/support/orientation.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace lade::cuda {

static constexpr std::string_view adobe_prefix("Adobe");
static constexpr std::string_view jfif_prefix("JFIF\0", 5);

static unsigned byte_at(std::string_view bytes, std::size_t at) noexcept {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
}

static unsigned big_16(std::string_view bytes, std::size_t at) noexcept {
  return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}

// Parses the segments before the first scan.
class jpeg_header_scan {
 public:
  explicit jpeg_header_scan(std::string_view file) noexcept : file_(file) {}

  jpeg_header read() noexcept {
    if (!file_.starts_with("\xff\xd8\xff")) return {0, 0, jpeg_obstacle::kind};
    const bool is_whole = read_segments();
    jpeg_header found = frame_.value_or(jpeg_header{0, 0, jpeg_obstacle::damage});
    if (found.obstacle == jpeg_obstacle::none) found.obstacle = obstacle(is_whole);
    return found;
  }

 private:
  // Returns whether a scan follows the segments.
  bool read_segments() noexcept {
    for (std::size_t at = 2; at + 4 <= file_.size();) {
      if (byte_at(file_, at) != 0xff) return false;
      const unsigned marker = byte_at(file_, at + 1);
      if (marker == 0xff) {
        ++at;  // a fill byte
        continue;
      }
      if (is_without_length(marker)) return false;
      const std::size_t length = big_16(file_, at + 2);
      if (length < 2 || at + 2 + length > file_.size()) return false;
      const auto body = file_.substr(at + 4, length - 2);
      at += 2 + length;
      if (marker == 0xda) {
        entropy_coded_ = file_.substr(at);
        return true;
      }
      read_segment(marker, body);
    }
    return false;
  }

  // Markers without a length: TEM, RST0 to RST7, SOI and EOI (ISO/IEC 10918-1, table B.1), and 0,
  // which is no marker. They are invalid before a scan, where decoders may disagree on how to
  // continue.
  static bool is_without_length(unsigned marker) noexcept {
    return marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd9);
  }

  void read_segment(unsigned marker, std::string_view body) noexcept {
    constexpr unsigned huffman_tables = 0xc4, reserved = 0xc8, arithmetic_tables = 0xcc;
    if (marker == 0xe0 && body.starts_with(jfif_prefix)) is_jfif_ = true;
    if (marker == 0xee && body.starts_with(adobe_prefix)) adobe_transform_ = byte_at(body, 11);
    if (marker >= 0xc0 && marker <= 0xcf && marker != huffman_tables && marker != reserved &&
        marker != arithmetic_tables)
      read_frame(marker, body);
  }

  // A second frame header means that the file is hierarchical.
  void read_frame(unsigned marker, std::string_view body) noexcept {
    const bool is_known_coding = marker >= 0xc0 && marker <= 0xc2;
    is_progressive_ = marker == 0xc2;
    jpeg_header frame{static_cast<int>(big_16(body, 3)), static_cast<int>(big_16(body, 1)),
                      jpeg_obstacle::none};
    const bool is_supported = !frame_ && is_known_coding && byte_at(body, 0) == 8 &&
                              frame.width > 0 && frame.height > 0 && has_known_sampling(body);
    if (!is_supported) frame.obstacle = jpeg_obstacle::kind;
    if (is_supported) blocks_ = blocks_of(frame, body);
    components_ = byte_at(body, 5);
    names_rgb_ = names_rgb(body);
    frame_ = frame;
  }

  // A component has an identifier, its sampling factors in one byte, and its table.
  static bool has_known_sampling(std::string_view body) noexcept {
    const unsigned components = byte_at(body, 5);
    if (body.size() < 6 + 3 * std::size_t{components}) return false;
    if (components == 1) return true;
    if (components != 3 || byte_at(body, 10) != 0x11 || byte_at(body, 13) != 0x11) return false;
    constexpr std::array known{0x11u, 0x21u, 0x22u, 0x12u, 0x41u, 0x42u};
    return std::ranges::find(known, byte_at(body, 7)) != known.end();
  }

  // The number of 8 x 8 blocks of an image of known sampling.
  static std::int64_t blocks_of(const jpeg_header& frame, std::string_view body) noexcept {
    const auto blocks = [&](int columns, int rows) {
      return (std::int64_t{frame.width} + 8 * columns - 1) / (8 * columns) *
             ((std::int64_t{frame.height} + 8 * rows - 1) / (8 * rows));
    };
    if (byte_at(body, 5) == 1) return blocks(1, 1);
    const auto sampling = static_cast<int>(byte_at(body, 7));
    return blocks(1, 1) + 2 * blocks(sampling >> 4, sampling & 15);
  }

  static bool names_rgb(std::string_view body) noexcept {
    return byte_at(body, 6) == 'R' && byte_at(body, 9) == 'G' && byte_at(body, 12) == 'B';
  }

  // As in libjpeg (jdapimin.c, default_decompress_parms).
  bool is_rgb() const noexcept {
    if (is_jfif_ || components_ != 3) return false;
    return adobe_transform_ ? *adobe_transform_ == 0 : names_rgb_;
  }

  jpeg_obstacle obstacle(bool is_whole) const noexcept {
    if (is_rgb()) return jpeg_obstacle::kind;
    if (!is_whole || !has_room_for_blocks()) return jpeg_obstacle::damage;
    if (is_progressive_ && has_many_scans()) return jpeg_obstacle::damage;
    return is_rotated() ? jpeg_obstacle::rotation : jpeg_obstacle::none;
  }

  // Whether the bytes up to the end of the image can contain its blocks. A block takes at least one
  // bit for its first coefficient and, in sequential images, one for the others (ISO/IEC 10918-1,
  // F.1.2 and G.1.2). So no memory is allocated for a short file with many pixels.
  bool has_room_for_blocks() const noexcept {
    const auto end = entropy_coded_.rfind("\xff\xd9");
    if (end == entropy_coded_.npos) return false;
    return blocks_ * (is_progressive_ ? 1 : 2) <= static_cast<std::int64_t>(end) * 8;
  }

  bool is_rotated() const noexcept {
    lade::support::orientation_search search;
    search.read_jpeg(std::as_bytes(std::span(file_)));
    return search.found() != 1;
  }

  bool has_many_scans() const noexcept {
    constexpr int most_scans = 100;
    int scans = 1;
    for (std::size_t at = 0; (at = entropy_coded_.find("\xff\xda", at)) != entropy_coded_.npos;
         at += 2)
      if (++scans > most_scans) return true;
    return false;
  }

  std::string_view file_;
  std::string_view entropy_coded_;  // from the first scan on
  std::optional<jpeg_header> frame_;
  std::optional<unsigned> adobe_transform_;
  std::int64_t blocks_ = 0;
  unsigned components_ = 0;
  bool is_jfif_ = false;
  bool is_progressive_ = false;
  bool names_rgb_ = false;
};

jpeg_header read_jpeg_header(std::span<const std::byte> file) noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  return jpeg_header_scan(bytes).read();
}

}  // namespace lade::cuda
