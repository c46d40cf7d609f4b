// The headers of tar archives, without any I/O: blocks of 512 bytes and the data of extensions come
// in, entries come out.
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

// The size of content with what fills its last block; nothing where 64 bits do not hold that.
std::optional<std::uint64_t> tar_padded(std::uint64_t bytes) noexcept;

bool is_zero_block(std::string_view block) noexcept;

// Whether the block's sum is the one that it says, as a sum of unsigned or of signed bytes.
bool has_tar_checksum(std::string_view block) noexcept;

// A numeric field: octal digits or base 256. Nothing for anything else, or beyond 64 bits.
std::optional<std::int64_t> parse_tar_number(std::string_view field) noexcept;

// Seconds since 1970 as pax writes them: "1700000000.25". Times that 64 bits of nanoseconds do not
// hold become the nearest that they do.
std::optional<std::chrono::sys_time<std::chrono::nanoseconds>> parse_pax_time(
    std::string_view text) noexcept;

// Why a header cannot be used.
class tar_fault : public std::runtime_error {
 public:
  // `skip`: the size of the data behind the header, where that is known.
  tar_fault(errc code, const std::string& reason, std::optional<std::uint64_t> skip = {})
      : std::runtime_error(reason), code_(code), skip_(skip) {}

  errc code() const noexcept { return code_; }
  std::optional<std::uint64_t> skip() const noexcept { return skip_; }

 private:
  errc code_;
  std::optional<std::uint64_t> skip_;
};

// What a header says of a regular file.
struct tar_entry {
  std::string name;
  std::uint64_t bytes = 0;
  std::chrono::sys_time<std::chrono::nanoseconds> modified = {};
  std::uint32_t mode = 0;
};

class tar_parser {
 public:
  enum class found : std::uint8_t {
    member,     // a regular file: entry(), with its content behind the header
    extension,  // data_bytes() that add_extension wants
    other,      // anything else, with data_bytes() to pass over
  };

  static constexpr std::uint64_t max_extension_bytes = std::uint64_t{16} << 20;

  // The next header, which is not a zero block. Throws tar_fault; what extensions said of the entry
  // is forgotten then.
  found add_header(std::string_view block);

  // The data of the extension whose header was the last. Throws tar_fault.
  void add_extension(std::string_view data);

  const tar_entry& entry() const noexcept { return entry_; }
  tar_entry take_entry() noexcept { return std::move(entry_); }

  // Without what fills the last block.
  std::uint64_t data_bytes() const noexcept { return data_bytes_; }

  // Whether an extension has said something of a header that has not come yet.
  bool expects_header() const noexcept { return !local_.empty() || long_name_.has_value(); }

  // What extensions have said of the next header is forgotten.
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

// Whether a block is the data of an extension for an entry of that name: pax records, or a GNU long
// name, of which `name` is the beginning.
bool looks_like_extension(std::string_view block, std::string_view name) noexcept;

}  // namespace lade::detail
