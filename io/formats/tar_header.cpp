#include "tar_header.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace lade::detail {

using tar_time = std::chrono::sys_time<std::chrono::nanoseconds>;

static constexpr std::size_t tar_checksum_at = 148;
static constexpr std::size_t tar_checksum_bytes = 8;

std::optional<std::uint64_t> tar_padded(std::uint64_t bytes) noexcept {
  std::uint64_t more = 0;
  if (__builtin_add_overflow(bytes, tar_block_bytes - 1, &more)) return std::nullopt;
  return more / tar_block_bytes * tar_block_bytes;
}

bool is_zero_block(std::string_view block) noexcept {
  return std::ranges::all_of(block, [](char c) { return c == 0; });
}

// Parses octal digits, with spaces around them. A zero byte ends the field.
static std::optional<std::int64_t> parse_octal(std::string_view field) noexcept {
  field = field.substr(0, field.find('\0'));
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  field = field.substr(0, field.find_last_not_of(' ') + 1);
  if (field.empty()) return 0;
  std::int64_t value = 0;
  auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (failure != std::errc() || end != field.data() + field.size() || value < 0)
    return std::nullopt;
  return value;
}

// Parses a big-endian number in two's complement. The most significant bit marks base 256, and is
// not part of the number.
static std::optional<std::int64_t> parse_base_256(std::string_view field) noexcept {
  auto first = static_cast<unsigned char>(field.front());
  std::int64_t value = (first & 0x40) ? static_cast<signed char>(first) : first & 0x3f;
  for (auto c : field.substr(1)) {
    if (__builtin_mul_overflow(value, 256, &value)) return std::nullopt;
    value += static_cast<unsigned char>(c);  // the low byte is zero
  }
  return value;
}

std::optional<std::int64_t> parse_tar_number(std::string_view field) noexcept {
  if (!field.empty() && static_cast<unsigned char>(field.front()) >= 0x80)
    return parse_base_256(field);
  return parse_octal(field);
}

// The sum of the bytes of a block, eight at a time. Each 16-bit lane adds two bytes per row; 64
// rows cannot overflow it.
static std::uint32_t sum_of_block(const char* block) noexcept {
  constexpr std::uint64_t even_columns = 0x00ff00ff00ff00ff;
  std::uint64_t sums = 0;
  for (std::size_t at = 0; at < tar_block_bytes; at += sizeof sums) {
    std::uint64_t row = 0;
    std::memcpy(&row, block + at, sizeof row);
    sums += (row & even_columns) + (row >> 8 & even_columns);
  }
  std::uint32_t sum = 0;
  for (; sums > 0; sums >>= 16) sum += sums & 0xffff;
  return sum;
}

static bool is_negative(char c) noexcept { return static_cast<unsigned char>(c) >= 0x80; }

bool has_tar_checksum(std::string_view block) noexcept {
  auto field = block.substr(tar_checksum_at, tar_checksum_bytes);
  auto stated = parse_octal(field);
  if (!stated) return false;
  std::int64_t sum = sum_of_block(block.data());
  for (auto c : field) sum += ' ' - static_cast<unsigned char>(c);
  if (*stated == sum) return true;
  auto negative =
      std::ranges::count_if(block, is_negative) - std::ranges::count_if(field, is_negative);
  return *stated == sum - 256 * negative;
}

// `rest`: nanoseconds.
static tar_time clamp_time(std::int64_t seconds, std::int64_t rest) noexcept {
  std::int64_t time = 0;
  if (__builtin_mul_overflow(seconds, std::int64_t{1'000'000'000}, &time) ||
      __builtin_add_overflow(time, rest, &time))
    return seconds < 0 ? tar_time::min() : tar_time::max();
  return tar_time(std::chrono::nanoseconds(time));
}

static bool is_digits(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// The first nine digits after the point.
static std::int64_t fraction_of(std::string_view digits) noexcept {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < 9; ++i)
    value = value * 10 + (i < digits.size() ? digits[i] - '0' : 0);
  return value;
}

std::optional<tar_time> parse_pax_time(std::string_view text) noexcept {
  bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  auto whole = text.substr(0, text.find('.'));
  auto rest = text.substr(std::min(whole.size() + 1, text.size()));
  if (whole.empty() || !is_digits(whole) || !is_digits(rest)) return std::nullopt;
  std::int64_t seconds = 0;
  auto failure = std::from_chars(whole.data(), whole.data() + whole.size(), seconds).ec;
  if (failure != std::errc()) return negative ? tar_time::min() : tar_time::max();
  auto fraction = fraction_of(rest);
  return negative ? clamp_time(-seconds, -fraction) : clamp_time(seconds, fraction);
}

static std::string_view text_field(std::string_view block, std::size_t at, std::size_t bytes) {
  auto field = block.substr(at, bytes);
  return field.substr(0, field.find('\0'));
}

// Removes the first record "LENGTH KEY=VALUE\n" from `data`, and returns its key and value.
static std::pair<std::string_view, std::string_view> take_record(std::string_view& data) {
  std::size_t bytes = 0;
  auto [end, failure] = std::from_chars(data.data(), data.data() + data.size(), bytes);
  auto digits = static_cast<std::size_t>(end - data.data());
  if (failure != std::errc() || bytes > data.size() || bytes < digits + 3 || data[digits] != ' ' ||
      data[bytes - 1] != '\n')
    throw tar_fault(errc::invalid_data, "a pax record is damaged");
  auto record = data.substr(digits + 1, bytes - digits - 2);
  auto equals = record.find('=');
  if (equals == record.npos || equals == 0)
    throw tar_fault(errc::invalid_data, "a pax record has no key");
  data.remove_prefix(bytes);
  return {record.substr(0, equals), record.substr(equals + 1)};
}

bool looks_like_extension(std::string_view block, std::string_view name) noexcept {
  if (name.size() >= 100 && block.starts_with(name.substr(0, 100))) return true;
  auto end = block.find_first_not_of("0123456789");
  if (end == 0 || end > 8 || end == block.npos || block[end] != ' ') return false;
  auto equals = block.find('=');
  return equals != block.npos && block.find('\n') > equals;
}

void tar_parser::forget() noexcept {
  local_.clear();
  long_name_.reset();
}

tar_parser::found tar_parser::add_header(std::string_view block) {
  try {
    return read_header(block);
  } catch (const tar_fault&) {
    forget();
    throw;
  }
}

tar_parser::found tar_parser::read_header(std::string_view block) {
  if (!has_tar_checksum(block)) throw tar_fault(errc::invalid_data, "its checksum is wrong");
  auto size = parse_tar_number(block.substr(124, 12));
  type_ = block[156];
  bool has_data = type_ < '1' || type_ > '6';
  if (has_data && (!size || *size < 0)) throw tar_fault(errc::invalid_data, "its size is no size");
  data_bytes_ = has_data ? static_cast<std::uint64_t>(*size) : 0;
  switch (type_) {
    case 'x':  // pax
    case 'X':  // pax of Solaris
    case 'g':  // pax, for all further entries
    case 'L':  // GNU, a long name
    case 'K':  // GNU, a long target of a link
      if (data_bytes_ > max_extension_bytes)
        throw tar_fault(
            errc::limit_exceeded,
            fmt::format("it announces a name or attributes of {} bytes; the limit is {}",
                        data_bytes_, max_extension_bytes));
      return found::extension;
    default: return read_entry(block, type_);
  }
}

// ustar splits a long name into a prefix and a name. GNU's header has other fields instead of the
// prefix.
std::string tar_parser::full_name(std::string_view block) const {
  if (auto path = record("path"); !path.empty()) return std::string(path);
  if (long_name_) return *long_name_;
  std::string name(text_field(block, 0, 100));
  auto prefix = text_field(block, 345, 155);
  if (block.substr(257, 6) != std::string_view("ustar\0", 6) || prefix.empty()) return name;
  return std::string(prefix).append("/").append(name);
}

std::string_view tar_parser::record(std::string_view key) const {
  if (auto here = local_.find(key); here != local_.end()) return here->second;
  if (auto all = global_.find(key); all != global_.end()) return all->second;
  return {};
}

void tar_parser::apply_records() {
  if (auto size = record("size"); !size.empty()) {
    auto [end, failure] = std::from_chars(size.data(), size.data() + size.size(), entry_.bytes);
    if (failure != std::errc() || end != size.data() + size.size())
      throw tar_fault(errc::invalid_data, entry_.name + ": its pax size is no size");
    data_bytes_ = entry_.bytes;
  }
  if (auto time = record("mtime"); !time.empty()) {
    auto modified = parse_pax_time(time);
    if (!modified)
      throw tar_fault(errc::invalid_data, entry_.name + ": its pax time is no time", data_bytes_);
    entry_.modified = *modified;
  }
}

void tar_parser::refuse_sparse() const {
  auto is_sparse = [](const auto& record) { return record.first.starts_with("GNU.sparse."); };
  if (type_ != 'S' && std::ranges::none_of(local_, is_sparse)) return;
  auto name = record("GNU.sparse.name");
  throw tar_fault(errc::unsupported,
                  (name.empty() ? entry_.name : std::string(name)) +
                      " is a sparse file, which is not read: archive it without --sparse",
                  data_bytes_);
}

// The content of a link is elsewhere in the archive: skipping it would lose a file silently.
void tar_parser::refuse_link(char type) {
  if (auto path = record("path"); !path.empty()) entry_.name = path;
  forget();
  if (type == '1')
    throw tar_fault(errc::unsupported,
                    entry_.name + " is a hard link: archive it with --hard-dereference",
                    data_bytes_);
  throw tar_fault(errc::unsupported,
                  entry_.name + " is a symbolic link: archive it with --dereference", data_bytes_);
}

tar_parser::found tar_parser::read_entry(std::string_view block, char type) {
  entry_.name = full_name(block);
  entry_.bytes = data_bytes_;
  auto seconds = parse_tar_number(block.substr(136, 12));
  auto mode = parse_tar_number(block.substr(100, 8));
  bool has_data = type < '1' || type > '6';
  entry_.mode = static_cast<std::uint32_t>(mode.value_or(0));
  entry_.modified = clamp_time(seconds.value_or(0), 0);
  if (type == '1' || type == '2') refuse_link(type);
  if (has_data) {
    apply_records();
    refuse_sparse();
  }
  bool is_directory = type == '\0' && entry_.name.ends_with('/');  // of V7
  forget();
  if (!has_data || is_directory || type == 'D' || type == 'V') return found::other;
  if (type != '0' && type != '\0' && type != '7')
    throw tar_fault(
        errc::unsupported,
        fmt::format("{} has an unknown type, {}", entry_.name, static_cast<unsigned char>(type)),
        data_bytes_);
  if (entry_.name.empty() || entry_.name.find('\0') != std::string::npos)
    throw tar_fault(errc::invalid_data, "its name is empty or has a zero byte", data_bytes_);
  if (!seconds || !mode)
    throw tar_fault(errc::invalid_data, entry_.name + ": its time or mode is no number",
                    data_bytes_);
  return found::member;
}

void tar_parser::add_extension(std::string_view data) {
  if (type_ == 'K') return;
  if (type_ == 'L') {
    long_name_ = std::string(data.substr(0, data.find('\0')));
    return;
  }
  auto& into = type_ == 'g' ? global_ : local_;
  if (type_ != 'g') local_.clear();
  while (!data.empty()) {
    auto [key, value] = take_record(data);
    into.insert_or_assign(std::string(key), std::string(value));
  }
}

}  // namespace lade::detail
