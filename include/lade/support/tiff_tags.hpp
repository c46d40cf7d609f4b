// tiff_tags: reads the first directory of a TIFF file, or of Exif, which has the same structure.

#pragma once

#include <lade/support/byte_view.hpp>

#include <cstdint>
#include <string_view>

namespace lade::support {

// Any bytes are safe to read. They must outlive the object. Supports BigTIFF.
class tiff_tags {
 public:
  explicit tiff_tags(byte_view file);

  // Why the directory cannot be read; empty if it can. It or its values are outside the file, or
  // tags share bytes so often that their values exceed twice the size of the file.
  std::string_view fault() const;

  // The first number of a tag of unsigned 16-bit numbers; 0 if there is none.
  unsigned short_of(std::uint32_t tag) const;

  // The first number of a tag of unsigned numbers; `otherwise` if there is none.
  std::uint64_t number_of(std::uint32_t tag, std::uint64_t otherwise) const;

  // The bytes of a tag's values; empty if the tag is missing or its values pass the end of the
  // file.
  byte_view bytes_of(std::uint32_t tag) const;

 private:
  struct entry {
    std::uint32_t tag = 0;
    std::uint32_t type = 0;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t at = 0;  // offset of the values
  };

  std::uint64_t number(std::uint64_t at, std::size_t count) const {
    return high_first_ ? file_.big(at, count) : file_.little(at, count);
  }
  entry entry_at(std::uint64_t i) const;

  byte_view file_;
  bool high_first_ = false;
  bool wide_ = false;          // BigTIFF: offsets and counts of 64 bits
  std::uint64_t first_ = 0;    // offset of the first entry
  std::uint64_t entries_ = 0;  // number of entries
};

}  // namespace lade::support
