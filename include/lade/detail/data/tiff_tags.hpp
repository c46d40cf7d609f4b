// The first directory of a TIFF file, or of the same structure inside of other files (Exif).

#pragma once

#include <lade/detail/common/byte_view.hpp>

#include <cstdint>
#include <string_view>

namespace lade::detail {

// Reads any bytes safely. The bytes outlive it. BigTIFF is read too.
class tiff_tags {
 public:
  explicit tiff_tags(byte_view file);

  // Why the directory cannot be read: it or values that it points to lie outside of the file, or
  // tags share so many bytes that their values would take more memory than the file. Else empty.
  std::string_view fault() const;

  // The value of a tag that has one number of 16 bits; 0 if there is none.
  unsigned short_of(std::uint32_t tag) const;

  // The first number of a tag of unsigned numbers; `otherwise` if there is none.
  std::uint64_t number_of(std::uint32_t tag, std::uint64_t otherwise) const;

  // The bytes of a tag's values; empty if it is missing or they are cut off.
  byte_view bytes_of(std::uint32_t tag) const;

 private:
  struct entry {
    std::uint32_t tag = 0;
    std::uint32_t type = 0;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t at = 0;  // of the values
  };

  std::uint64_t number(std::uint64_t at, std::size_t count) const {
    return high_first_ ? file_.big(at, count) : file_.little(at, count);
  }
  entry entry_at(std::uint64_t i) const;

  byte_view file_;
  bool high_first_ = false;
  bool wide_ = false;        // BigTIFF: offsets and counts of 64 bits
  std::uint64_t first_ = 0;  // entry
  std::uint64_t entries_ = 0;
};

}  // namespace lade::detail
