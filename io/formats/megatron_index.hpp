// Parses the index of a Megatron data set: the sequences of tokens in its .bin, and the documents
// that consist of them.

#pragma once

#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lade::io {

// A view of an index. The bytes must outlive it.
class megatron_index {
 public:
  // Checks the whole index without allocating memory. Throws error naming `name` and the position
  // if the bytes are not the index of a .bin of `bin_bytes` bytes.
  megatron_index(std::span<const std::byte> index, std::string_view name, std::uint64_t bin_bytes);

  element_type type() const noexcept { return type_; }
  std::uint64_t documents() const noexcept { return documents_; }

  // The first token of document `i`. `i` may be documents(): returns the end of the tokens.
  std::uint64_t document_begin(std::uint64_t i) const noexcept;

 private:
  void read_header(std::string_view name);
  void check_sequences(std::string_view name, std::uint64_t bin_bytes) const;
  void check_documents(std::string_view name) const;
  std::uint64_t sequence_begin(std::uint64_t i) const noexcept;  // in bytes
  std::int64_t document(std::uint64_t i) const noexcept;         // its first sequence

  std::span<const std::byte> index_;
  element_type type_ = element_type::u8;
  std::uint64_t sequences_ = 0;
  std::uint64_t documents_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace lade::io
