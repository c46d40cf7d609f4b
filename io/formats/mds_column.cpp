#include "mds_index.hpp"

#include <lade/error.hpp>

#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

using column_kind = mds_column::kind;

static std::optional<element_type> numpy_type(std::string_view name) noexcept {
  constexpr std::array<std::pair<std::string_view, element_type>, 11> types{
      {{"uint8", element_type::u8},
       {"int8", element_type::i8},
       {"uint16", element_type::u16},
       {"int16", element_type::i16},
       {"uint32", element_type::u32},
       {"int32", element_type::i32},
       {"uint64", element_type::u64},
       {"int64", element_type::i64},
       {"float16", element_type::f16},
       {"float32", element_type::f32},
       {"float64", element_type::f64}}};
  for (auto& [text, type] : types)
    if (text == name) return type;
  return std::nullopt;
}

static std::optional<column_kind> simple_kind(std::string_view encoding) noexcept {
  if (encoding == "bytes" || encoding == "jpeg" || encoding == "png") return column_kind::bytes;
  if (encoding == "str" || encoding == "json" || encoding == "str_decimal")
    return column_kind::text;
  if (encoding == "str_int") return column_kind::text_integer;
  if (encoding == "str_float") return column_kind::text_number;
  return std::nullopt;
}

[[noreturn]] static void refuse_encoding(std::string_view column, std::string_view encoding) {
  throw error(errc::unsupported, fmt::format("open column \"{}\" of MDS", column),
              "its encoding is " + std::string(encoding));
}

// Parses "2,3": at least one extent, each at least 1.
static std::optional<std::vector<std::int64_t>> parse_shape(std::string_view text) {
  std::vector<std::int64_t> shape;
  for (;;) {
    std::int64_t extent = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (failure != std::errc() || extent < 1 || shape.size() == dimensions::max_rank)
      return std::nullopt;
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return shape;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
}

// The size of an array; empty on overflow.
static std::optional<std::size_t> array_bytes(const std::vector<std::int64_t>& shape,
                                              element_type element) noexcept {
  auto bytes = element_bytes(element);
  for (auto extent : shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes))
      return std::nullopt;
  return bytes;
}

// Parses the rest of "ndarray", "ndarray:type" or "ndarray:type:shape".
static mds_column parse_array_column(mds_column column, std::string_view encoding) {
  column.type = column_kind::array;
  auto rest = encoding.substr(std::string_view("ndarray").size());
  if (rest.empty()) return column;
  rest.remove_prefix(1);
  auto colon = rest.find(':');
  column.element = numpy_type(rest.substr(0, colon));
  if (!column.element) refuse_encoding(column.name, encoding);
  if (colon == rest.npos) return column;
  column.shape = parse_shape(rest.substr(colon + 1));
  if (column.shape) column.size = array_bytes(*column.shape, *column.element);
  if (!column.size) refuse_encoding(column.name, encoding);
  return column;
}

mds_column parse_mds_column(std::string name, std::string_view encoding) {
  mds_column column;
  column.name = std::move(name);
  if (encoding == "ndarray" || encoding.starts_with("ndarray:"))
    return parse_array_column(std::move(column), encoding);
  if (auto kind = simple_kind(encoding.starts_with("jpeg:") ? "jpeg" : encoding)) {
    column.type = *kind;
    return column;
  }
  column.type = column_kind::number;
  column.element = encoding == "int" ? element_type::i64 : numpy_type(encoding);
  if (!column.element) refuse_encoding(column.name, encoding);
  column.size = element_bytes(*column.element);
  return column;
}

}  // namespace lade::io
