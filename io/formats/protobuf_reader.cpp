#include "protobuf_reader.hpp"

#include <lade/error.hpp>

#include <string>

#include <fmt/format.h>

namespace lade::io {

void protobuf_reader::refuse(std::string_view reason) const {
  throw error(errc::invalid_data, "parse " + std::string(name_),
              fmt::format("byte {}: {}", rest_.data() - begin_, reason));
}

void protobuf_reader::next() {
  auto tag = varint();
  if (tag >> 3 == 0 || tag >> 3 >= 1u << 29) refuse("a field number that no message has");
  auto type = tag & 7;
  if (type == 3 || type == 4 || type > 5) refuse("a field of an unknown type");
  number_ = static_cast<std::uint32_t>(tag >> 3);
  type_ = static_cast<wire>(type);
}

std::uint64_t protobuf_reader::varint() {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < rest_.size() && i < 10; ++i) {
    auto byte = std::to_integer<std::uint64_t>(rest_[i]);
    if (i == 9 && byte > 1) break;
    value |= (byte & 127) << (7 * i);
    if (byte < 128) {
      rest_ = rest_.subspan(i + 1);
      return value;
    }
  }
  refuse("a number that ends early or has more than 64 bits");
}

std::span<const std::byte> protobuf_reader::fixed(std::size_t bytes) {
  if (bytes > rest_.size()) refuse("a value that ends early");
  auto value = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return value;
}

std::span<const std::byte> protobuf_reader::bytes() {
  if (type_ != wire::bytes) refuse("a field of an unexpected type");
  auto length = varint();
  if (length > rest_.size()) refuse("a value that ends early");
  return fixed(static_cast<std::size_t>(length));
}

}  // namespace lade::io
