// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lade::io {

// Reads the fields of one message in order. The results are views of the message. For invalid
// bytes, all functions throw error(invalid_data) naming `name` and the byte, counted from `begin`.
class protobuf_reader {
 public:
  enum class wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  protobuf_reader(std::span<const std::byte> message, std::string_view name,
                  const std::byte* begin) noexcept
      : rest_(message), name_(name), begin_(begin) {}

  bool at_end() const noexcept { return rest_.empty(); }

  // Reads the tag of the next field. Groups are refused.
  void next();
  std::uint32_t number() const noexcept { return number_; }
  wire type() const noexcept { return type_; }

  // Reads the value of the field, which must be of this type.
  std::span<const std::byte> bytes();

  // Read a value regardless of the tag: values of packed lists have none.
  std::uint64_t varint();
  std::span<const std::byte> fixed(std::size_t bytes);

  [[noreturn]] void refuse(std::string_view reason) const;

 private:
  std::span<const std::byte> rest_;
  std::string_view name_;
  const std::byte* begin_;
  std::uint32_t number_ = 0;
  wire type_ = wire::varint;
};

}  // namespace lade::io
