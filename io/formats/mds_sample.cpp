#include "mds_sample.hpp"

#include <lade/error.hpp>
#include <lade/support/little_endian.hpp>
#include <lade/support/utf8.hpp>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

[[noreturn]] static void refuse_mds(std::string_view name, const mds_column& column,
                                    std::string_view reason, errc code = errc::invalid_data) {
  throw error(code, fmt::format("read column \"{}\" of {}", column.name, name), reason);
}

// Removes bytes from the front of a sample, and returns them.
static std::span<const std::byte> take_mds(std::span<const std::byte>& rest, std::size_t bytes,
                                           std::string_view name, const mds_column& column) {
  if (bytes > rest.size())
    refuse_mds(name, column, fmt::format("{} bytes; the sample has {} left", bytes, rest.size()));
  auto taken = rest.first(bytes);
  rest = rest.subspan(bytes);
  return taken;
}

static std::optional<element_type> array_type(unsigned code) noexcept {
  switch (code) {
    case 8: return element_type::u8;
    case 9: return element_type::i8;
    case 16: return element_type::u16;
    case 17: return element_type::i16;
    case 18: return element_type::f16;
    case 32: return element_type::u32;
    case 33: return element_type::i32;
    case 34: return element_type::f32;
    case 64: return element_type::u64;
    case 65: return element_type::i64;
    case 66: return element_type::f64;
    default: return std::nullopt;
  }
}

// An unsigned number of 1, 2, 4 or 8 bytes.
static std::uint64_t extent_of(std::span<const std::byte> bytes) noexcept {
  switch (bytes.size()) {
    case 1: return support::load_little<std::uint8_t>(bytes);
    case 2: return support::load_little<std::uint16_t>(bytes);
    case 4: return support::load_little<std::uint32_t>(bytes);
    default: return support::load_little<std::uint64_t>(bytes);
  }
}

// Reads the stored shape of an array: a byte with the rank and the width of the extents, then the
// extents.
static dimensions take_shape(std::span<const std::byte>& rest, std::string_view name,
                             const mds_column& column) {
  auto head = std::to_integer<unsigned>(take_mds(rest, 1, name, column)[0]);
  auto rank = head >> 2;
  if (rank > dimensions::max_rank)
    refuse_mds(name, column, fmt::format("{} dimensions; at most 8 are supported", rank),
               errc::unsupported);
  std::vector<std::int64_t> extents;
  for (unsigned i = 0; i < rank; ++i) {
    auto extent = extent_of(take_mds(rest, std::size_t{1} << (head & 3), name, column));
    if (!std::in_range<std::int64_t>(extent)) refuse_mds(name, column, "an extent beyond 2^63");
    extents.push_back(static_cast<std::int64_t>(extent));
  }
  return dimensions(extents);
}

// Sets the spec of an array, and removes its header from the bytes.
static void parse_array(mds_value& value, std::string_view name) {
  auto& column = *value.column;
  auto& rest = value.bytes;
  auto type = column.element;
  if (!type) type = array_type(std::to_integer<unsigned>(take_mds(rest, 1, name, column)[0]));
  if (!type) refuse_mds(name, column, "an array of an unknown type");
  auto shape = column.shape ? dimensions(*column.shape) : take_shape(rest, name, column);
  value.array = {*type, shape};
  auto bytes = element_bytes(*type);
  bool fits = true;
  for (auto extent : shape)
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes);
  if (!fits || bytes != rest.size())
    refuse_mds(name, column,
               fmt::format("{} bytes are no array {} of {}", rest.size(), to_string(shape),
                           lade::name(*type)));
}

std::vector<mds_value> split_mds_sample(std::span<const std::byte> bytes,
                                        const std::vector<mds_column>& columns,
                                        std::string_view name) {
  std::vector<std::size_t> sizes;
  for (auto& column : columns)
    sizes.push_back(column.size
                        ? *column.size
                        : support::load_little<std::uint32_t>(take_mds(bytes, 4, name, column)));
  std::vector<mds_value> values;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    values.push_back({&columns[i], take_mds(bytes, sizes[i], name, columns[i])});
    if (columns[i].type == mds_column::kind::array) parse_array(values.back(), name);
  }
  if (!bytes.empty())
    throw error(errc::invalid_data, "read " + std::string(name),
                fmt::format("{} bytes follow its columns", bytes.size()));
  return values;
}

static bool is_aligned(const mds_value& value) noexcept {
  auto address = reinterpret_cast<std::uintptr_t>(value.bytes.data());
  return value.column->type != mds_column::kind::array ||
         address % element_bytes(value.array.type) == 0;
}

// In units of 8, so that each copy is aligned.
static std::size_t copy_bytes(const mds_value& value) noexcept {
  return is_aligned(value) ? 0 : (value.bytes.size() + 7) / 8 * 8;
}

std::size_t unaligned_bytes(const std::vector<mds_value>& values) noexcept {
  std::size_t bytes = 0;
  for (auto& value : values) bytes += copy_bytes(value);
  return bytes;
}

// Converts IEEE 754 binary16.
static double half_value(std::uint16_t bits) noexcept {
  int exponent = bits >> 10 & 31;
  double fraction = bits & 1023;
  double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31)
    size = fraction == 0 ? std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  return bits >> 15 ? -size : size;
}

template <class T>
static field number_field(const mds_value& value) {
  return {value.column->name, support::load_little<T>(value.bytes)};
}

static field number_field(const mds_value& value) {
  switch (*value.column->element) {
    case element_type::u8: return number_field<std::uint8_t>(value);
    case element_type::i8: return number_field<std::int8_t>(value);
    case element_type::u16: return number_field<std::uint16_t>(value);
    case element_type::i16: return number_field<std::int16_t>(value);
    case element_type::u32: return number_field<std::uint32_t>(value);
    case element_type::i32: return number_field<std::int32_t>(value);
    case element_type::u64: return number_field<std::uint64_t>(value);
    case element_type::i64: return number_field<std::int64_t>(value);
    case element_type::f32: return number_field<float>(value);
    case element_type::f64: return number_field<double>(value);
    default:
      return {value.column->name, half_value(support::load_little<std::uint16_t>(value.bytes))};
  }
}

static std::string_view text_of(const mds_value& value) noexcept {
  return {reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()};
}

static field text_field(const mds_value& value, std::string_view name) {
  for (auto rest = text_of(value); !rest.empty();) {
    auto length = support::utf8_length(rest);
    if (length == 0) refuse_mds(name, *value.column, "its text is not UTF-8");
    rest.remove_prefix(length);
  }
  return {value.column->name, std::string(text_of(value))};
}

// Parses a number in text form.
template <class T>
static field parsed_field(const mds_value& value, std::string_view name) {
  auto text = text_of(value);
  T number{};
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size())
    refuse_mds(name, *value.column, "its text is no number of 64 bits");
  return {value.column->name, number};
}

std::vector<field> mds_fields(const std::vector<mds_value>& values, const buffer& bytes,
                              const buffer& copies, std::string_view name) {
  std::vector<field> fields;
  fields.reserve(values.size());
  std::size_t used = 0;
  for (auto& value : values) {
    auto view = [&] {
      return bytes.slice(static_cast<std::size_t>(value.bytes.data() - bytes.data()),
                         value.bytes.size());
    };
    switch (value.column->type) {
      case mds_column::kind::bytes: fields.emplace_back(value.column->name, view()); break;
      case mds_column::kind::text: fields.push_back(text_field(value, name)); break;
      case mds_column::kind::number: fields.push_back(number_field(value)); break;
      case mds_column::kind::text_integer:
        fields.push_back(parsed_field<std::int64_t>(value, name));
        break;
      case mds_column::kind::text_number:
        fields.push_back(parsed_field<double>(value, name));
        break;
      case mds_column::kind::array: {
        auto elements = is_aligned(value) ? view() : copies.slice(used, value.bytes.size());
        if (!is_aligned(value))
          std::memcpy(elements.data(), value.bytes.data(), value.bytes.size());
        used += copy_bytes(value);
        fields.emplace_back(value.column->name, tensor(value.array, std::move(elements)));
        break;
      }
    }
  }
  return fields;
}

}  // namespace lade::io
