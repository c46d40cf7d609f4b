// Parses the headers of tar archives, without I/O: the input is blocks of 512 bytes and the data of
// extensions, the output is entries.
//
// Formats: POSIX.1-1988 ustar, POSIX.1-2001 pax, GNU tar (long names, numbers in base 256), and the
// format of Unix V7.

#pragma once

#include <lade/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lade::detail {

inline constexpr std::size_t tar_block_bytes = 512;

// The size of content with its padding to whole blocks; empty if that exceeds 64 bits.
std::optional<std::uint64_t> tar_padded(std::uint64_t bytes) noexcept;

bool is_zero_block(std::string_view block) noexcept;

// Whether the checksum in a header is right, as a sum of unsigned or of signed bytes.
bool has_tar_checksum(std::string_view block) noexcept;

// Parses a numeric field: octal digits or base 256. Empty if it is neither, or exceeds 64 bits.
std::optional<std::int64_t> parse_tar_number(std::string_view field) noexcept;

// Parses a time of pax, in seconds since 1970: "1700000000.25". Clamps it to the range of 64 bits
// of nanoseconds.
std::optional<std::chrono::sys_time<std::chrono::nanoseconds>> parse_pax_time(
    std::string_view text) noexcept;

// Why a header cannot be used.
class tar_fault : public std::runtime_error {
 public:
  // `skip`: the size of the data after the header, if known.
  tar_fault(errc code, const std::string& reason, std::optional<std::uint64_t> skip = {})
      : std::runtime_error(reason), code_(code), skip_(skip) {}

  errc code() const noexcept { return code_; }
  std::optional<std::uint64_t> skip() const noexcept { return skip_; }

 private:
  errc code_;
  std::optional<std::uint64_t> skip_;
};

// The header of a regular file.
struct tar_entry {
  std::string name;
  std::uint64_t bytes = 0;
  std::chrono::sys_time<std::chrono::nanoseconds> modified = {};
  std::uint32_t mode = 0;
};

class tar_parser {
 public:
  enum class found : std::uint8_t {
    member,     // a regular file: entry(); its content follows
    extension,  // data_bytes() follow: pass them to add_extension
    other,      // anything else: skip data_bytes()
  };

  static constexpr std::uint64_t max_extension_bytes = std::uint64_t{16} << 20;

  // Parses a header; `block` is not a zero block. Throws tar_fault; then the extensions of the
  // entry are dropped.
  found add_header(std::string_view block);

  // `data`: of the extension whose header was the last block. Throws tar_fault.
  void add_extension(std::string_view data);

  const tar_entry& entry() const noexcept { return entry_; }
  tar_entry take_entry() noexcept { return std::move(entry_); }

  // Without padding.
  std::uint64_t data_bytes() const noexcept { return data_bytes_; }

  // Whether there are extensions of the next header.
  bool expects_header() const noexcept { return !local_.empty() || long_name_.has_value(); }

  // Drops the extensions of the next header.
  void forget() noexcept;

 private:
  using records = std::map<std::string, std::string, std::less<>>;

  found read_header(std::string_view block);
  found read_entry(std::string_view block, char type);
  std::string_view record(std::string_view key) const;
  std::string full_name(std::string_view block) const;
  void apply_records();
  void refuse_sparse() const;
  void refuse_link(char type);

  char type_ = 0;
  std::uint64_t data_bytes_ = 0;
  tar_entry entry_;
  std::optional<std::string> long_name_;
  records global_;
  records local_;
};

// Whether a block looks like the data of an extension of the entry `name`: pax records, or a GNU
// long name that starts with `name`.
bool looks_like_extension(std::string_view block, std::string_view name) noexcept;

}  // namespace lade::detail
