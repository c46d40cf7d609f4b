#include "npy_header.hpp"

#include <lade/error.hpp>
#include <lade/support/little_endian.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

[[noreturn]] static void refuse_npy(std::string_view name, std::string_view reason,
                                    errc code = errc::invalid_data) {
  throw error(code, "read array " + std::string(name), reason);
}

// Parses the header: a literal of a Python dictionary.
class npy_literal {
 public:
  npy_literal(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  void read(npy_header& into) {
    expect('{');
    while (!accept('}')) {
      read_member(into);
      if (accept(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (at_ != text_.size()) refuse("text after the dictionary of its header");
    if (!type_ || !order_ || !shape_) refuse("its header lacks descr, fortran_order or shape");
  }

 private:
  void read_member(npy_header& into) {
    auto key = read_string();
    expect(':');
    if (key == "descr")
      read_once(type_, [&] { read_type(into); });
    else if (key == "fortran_order")
      read_once(order_, [&] { into.fortran_order = read_boolean(); });
    else if (key == "shape")
      read_once(shape_, [&] { into.spec.shape = read_shape(); });
    else
      refuse(fmt::format("its header has the unknown key '{}'", key));
  }

  template <class F>
  void read_once(bool& is_read, F read_value) {
    if (std::exchange(is_read, true)) refuse("its header has a key twice");
    read_value();
  }

  void read_type(npy_header& into) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      refuse_npy(name_, "records (structured dtypes) are not supported", errc::unsupported);
    auto type = read_string();
    auto order = type.empty() ? '\0' : type.front();
    auto known = type_of_code(type.substr(type.empty() ? 0 : 1));
    if (!known || std::string_view("<>|=").find(order) == std::string_view::npos)
      refuse_npy(name_,
                 fmt::format("elements of type '{}' are not supported{}", type, instead_of(type)),
                 errc::unsupported);
    into.spec.type = *known;
    constexpr char other = std::endian::native == std::endian::little ? '>' : '<';
    into.swapped = order == other && element_bytes(*known) > 1;
    if (order == '|' && element_bytes(*known) > 1) refuse("elements without a byte order");
  }

  // The type to save instead of complex numbers.
  static std::string instead_of(std::string_view type) {
    auto code = type.substr(type.empty() ? 0 : 1);
    bool has_order = type.find_first_of("<>=") == 0;
    if (!has_order || (code != "c8" && code != "c16")) return {};
    return fmt::format(
        "; save the view of it of type '{}{}', where real and imaginary parts alternate",
        type.substr(0, 1), code == "c8" ? "f4" : "f8");
  }

  static std::optional<element_type> type_of_code(std::string_view code) noexcept {
    using enum element_type;
    constexpr std::array<std::pair<std::string_view, element_type>, 12> types{{{"b1", boolean},
                                                                               {"u1", u8},
                                                                               {"i1", i8},
                                                                               {"u2", u16},
                                                                               {"i2", i16},
                                                                               {"u4", u32},
                                                                               {"i4", i32},
                                                                               {"u8", u64},
                                                                               {"i8", i64},
                                                                               {"f2", f16},
                                                                               {"f4", f32},
                                                                               {"f8", f64}}};
    for (auto& [text, type] : types)
      if (text == code) return type;
    return std::nullopt;
  }

  bool read_boolean() {
    skip_space();
    for (bool value : {true, false}) {
      std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    refuse("its fortran_order is neither True nor False");
  }

  // Reads a tuple of integers, which Python 2 may write with an L.
  dimensions read_shape() {
    std::array<std::int64_t, dimensions::max_rank> extents{};
    std::size_t rank = 0;
    expect('(');
    while (!accept(')')) {
      if (rank == extents.size())
        refuse_npy(name_, "it has more than 8 dimensions", errc::unsupported);
      extents[rank++] = read_extent();
      if (accept(',')) continue;
      if (rank == 1) refuse("its shape is no tuple");
      expect(')');
      break;
    }
    return dimensions(std::span<const std::int64_t>(extents).first(rank));
  }

  std::int64_t read_extent() {
    skip_space();
    std::int64_t extent = -1;
    auto* end = text_.data() + text_.size();
    auto [next, failure] = std::from_chars(text_.data() + at_, end, extent);
    if (failure != std::errc() || extent < 0) refuse("an extent of its shape is no whole number");
    at_ = static_cast<std::size_t>(next - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return extent;
  }

  std::string_view read_string() {
    skip_space();
    char quote = at_ < text_.size() ? text_[at_] : '\0';
    auto end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) refuse("expected a string in its header");
    auto begin = std::exchange(at_, end + 1) + 1;
    return text_.substr(begin, end - begin);
  }

  void skip_space() noexcept {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  }

  bool accept(char expected) noexcept {
    skip_space();
    if (at_ == text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }

  void expect(char expected) {
    if (!accept(expected)) refuse(fmt::format("expected '{}' in its header", expected));
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    refuse_npy(name_, fmt::format("{} (byte {} of its header)", reason, at_));
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  bool type_ = false;  // whether each was read
  bool order_ = false;
  bool shape_ = false;
};

// The range of the dictionary, which follows 6 bytes of magic, 2 of version, and 2 or 4 of its
// length.
static std::pair<std::size_t, std::size_t> find_npy_dictionary(std::span<const std::byte> file,
                                                               std::string_view name) {
  constexpr std::string_view magic = "\x93NUMPY";
  if (file.size() < 10 || std::memcmp(file.data(), magic.data(), magic.size()) != 0)
    refuse_npy(name, "it does not begin with the signature of .npy files");
  auto major = std::to_integer<unsigned>(file[6]);
  auto minor = std::to_integer<unsigned>(file[7]);
  if (major < 1 || major > 3 || minor != 0)
    refuse_npy(name, fmt::format("version {}.{} of the format is not supported", major, minor),
               errc::unsupported);
  std::size_t begin = major == 1 ? 10 : 12;
  if (file.size() < begin) refuse_npy(name, "it ends in its header");
  std::size_t bytes = major == 1 ? support::load_little<std::uint16_t>(file.data() + 8)
                                 : support::load_little<std::uint32_t>(file.data() + 8);
  if (bytes > file.size() - begin)
    refuse_npy(
        name, fmt::format("its header claims {} bytes, and {} follow", bytes, file.size() - begin));
  return {begin, bytes};
}

// The size of the elements; the largest number on overflow.
static std::size_t npy_bytes(const tensor_spec& spec) noexcept {
  auto bytes = element_bytes(spec.type);
  bool is_empty = std::ranges::find(spec.shape, 0) != spec.shape.end();
  for (auto extent : spec.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes))
      return std::numeric_limits<std::size_t>::max();
  return is_empty ? 0 : bytes;
}

npy_header parse_npy_header(std::span<const std::byte> file, std::string_view name) {
  auto [begin, bytes] = find_npy_dictionary(file, name);
  npy_header header;
  std::string_view text(reinterpret_cast<const char*>(file.data()) + begin, bytes);
  npy_literal(text, name).read(header);
  header.data_offset = begin + bytes;
  auto there = file.size() - header.data_offset;
  auto needed = npy_bytes(header.spec);
  if (needed != there)
    refuse_npy(name, fmt::format("an array {}{} needs {} bytes behind its header, and there are {}",
                                 lade::name(header.spec.type), to_string(header.spec.shape), needed,
                                 there));
  return header;
}

tensor make_stored_tensor(const tensor_spec& spec, bool fortran_order, buffer memory) {
  if (!fortran_order || spec.shape.size() < 2 || spec.elements() == 0)
    return tensor(spec, std::move(memory));
  std::array<std::int64_t, dimensions::max_rank> strides{};
  std::int64_t step = 1;
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    strides[i] = step;
    step *= spec.shape[i];
  }
  auto* first = memory.data();
  return tensor(spec, dimensions(std::span<const std::int64_t>(strides).first(spec.shape.size())),
                std::move(memory), first);
}

void require_booleans(std::span<const std::byte> elements, std::string_view name) {
  std::byte all{0};
  for (auto element : elements) all |= element;
  if (all > std::byte{1}) refuse_npy(name, "a bool is neither 0 nor 1");
}

template <class T>
static void swap_npy_elements(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
    T element;
    std::memcpy(&element, from + i, sizeof(T));
    if constexpr (sizeof(T) == 2) element = __builtin_bswap16(element);
    if constexpr (sizeof(T) == 4) element = __builtin_bswap32(element);
    if constexpr (sizeof(T) == 8) element = __builtin_bswap64(element);
    std::memcpy(to + i, &element, sizeof(T));
  }
}

static void copy_npy_elements(const npy_header& header, const std::byte* from, std::byte* to,
                              std::size_t bytes) noexcept {
  if (!header.swapped) {
    std::memcpy(to, from, bytes);
    return;
  }
  switch (element_bytes(header.spec.type)) {
    case 2: return swap_npy_elements<std::uint16_t>(from, to, bytes);
    case 4: return swap_npy_elements<std::uint32_t>(from, to, bytes);
    default: return swap_npy_elements<std::uint64_t>(from, to, bytes);
  }
}

tensor make_npy_tensor(const npy_header& header, const buffer& file, buffer copy,
                       std::string_view name) {
  auto stored = file.slice(header.data_offset, file.size() - header.data_offset);
  if (header.spec.type == element_type::boolean) require_booleans(stored.bytes(), name);
  if (header.is_usable(stored.data()))
    return make_stored_tensor(header.spec, header.fortran_order, std::move(stored));
  if (!stored.empty()) copy_npy_elements(header, stored.data(), copy.data(), stored.size());
  return make_stored_tensor(header.spec, header.fortran_order, std::move(copy));
}

}  // namespace lade::io
