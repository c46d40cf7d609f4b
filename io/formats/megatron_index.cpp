#include "megatron_index.hpp"

#include <lade/error.hpp>
#include <lade/support/little_endian.hpp>

#include <optional>
#include <string>

#include <fmt/format.h>

namespace lade::io {

// The magic, the version, the type of the tokens, the number of sequences, and the number of
// entries for documents.
static constexpr std::size_t megatron_header_bytes = 9 + 8 + 1 + 8 + 8;

[[noreturn]] static void refuse_index(std::string_view name, const std::string& reason,
                                      errc code = errc::invalid_data) {
  throw error(code, "read the index " + std::string(name), reason);
}

// The element type of Megatron's code; empty if it is not an integer type.
static std::optional<element_type> megatron_type(unsigned code) noexcept {
  switch (code) {
    case 1: return element_type::u8;
    case 2: return element_type::i8;
    case 3: return element_type::i16;
    case 4: return element_type::i32;
    case 5: return element_type::i64;
    case 8: return element_type::u16;
    default: return std::nullopt;
  }
}

megatron_index::megatron_index(std::span<const std::byte> index, std::string_view name,
                               std::uint64_t bin_bytes)
    : index_(index) {
  read_header(name);
  tokens_ = bin_bytes / element_bytes(type_);
  check_sequences(name, bin_bytes);
  check_documents(name);
}

void megatron_index::read_header(std::string_view name) {
  std::string_view text(reinterpret_cast<const char*>(index_.data()), index_.size());
  if (text.starts_with("TNTIDX"))
    refuse_index(name, "the format of its magic, TNTIDX, is too old", errc::unsupported);
  if (!text.starts_with(std::string_view("MMIDIDX\0\0", 9)))
    refuse_index(name, "it does not begin with MMIDIDX");
  if (text.size() < megatron_header_bytes)
    refuse_index(name, fmt::format("it ends at byte {}, in its header", text.size()));
  auto version = support::load_little<std::uint64_t>(&index_[9]);
  if (version != 1)
    refuse_index(name, fmt::format("its version is {}, not 1", version), errc::unsupported);
  auto code = std::to_integer<unsigned>(index_[17]);
  auto type = megatron_type(code);
  if (!type)
    refuse_index(name, fmt::format("its tokens are of type {}, which is no integer type", code),
                 errc::unsupported);
  type_ = *type;
  sequences_ = support::load_little<std::uint64_t>(&index_[18]);
  auto entries = support::load_little<std::uint64_t>(&index_[26]);
  // The documents may be followed by one byte per sequence: its mode.
  auto rest = index_.size() - megatron_header_bytes;
  bool fits = sequences_ <= rest / 12 && entries <= (rest - 12 * sequences_) / 8;
  auto left = fits ? rest - 12 * sequences_ - 8 * entries : 1;
  if (!fits || (left != 0 && left != sequences_))
    refuse_index(
        name,
        fmt::format("{} bytes are not the size that {} sequences and {} entries of documents take",
                    index_.size(), sequences_, entries));
  if (entries == 0) refuse_index(name, "it has no entry for documents");
  documents_ = entries - 1;
}

std::uint64_t megatron_index::sequence_begin(std::uint64_t i) const noexcept {
  auto pointers = index_.subspan(megatron_header_bytes + 4 * sequences_);
  return support::load_little<std::uint64_t>(pointers.data() + 8 * i);
}

std::int64_t megatron_index::document(std::uint64_t i) const noexcept {
  auto entries = index_.subspan(megatron_header_bytes + 12 * sequences_);
  return support::load_little<std::int64_t>(entries.data() + 8 * i);
}

// Checks that the sequences are contiguous and cover the .bin.
void megatron_index::check_sequences(std::string_view name, std::uint64_t bin_bytes) const {
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < sequences_; ++i) {
    if (sequence_begin(i) != end)
      refuse_index(
          name, fmt::format("sequence {} begins at byte {} of the .bin; the one before ends at {}",
                            i, sequence_begin(i), end));
    auto length = support::load_little<std::int32_t>(index_.data() + megatron_header_bytes + 4 * i);
    auto bytes = static_cast<std::uint64_t>(length) * element_bytes(type_);
    if (length < 0 || bytes > bin_bytes - end)
      refuse_index(name, fmt::format("sequence {} has {} tokens, more than the .bin", i, length));
    end += bytes;
  }
  if (end != bin_bytes)
    refuse_index(name, fmt::format("its sequences end at byte {} of the .bin, which has {}", end,
                                   bin_bytes));
}

void megatron_index::check_documents(std::string_view name) const {
  std::int64_t before = 0;
  for (std::uint64_t i = 0; i <= documents_; before = document(i++))
    if (document(i) < before || (i == 0 && document(i) != 0))
      refuse_index(name, fmt::format("entry {} of documents is {}; the one before is {}", i,
                                     document(i), before));
  if (static_cast<std::uint64_t>(before) != sequences_)
    refuse_index(name, fmt::format("its documents have {} of {} sequences", before, sequences_));
}

std::uint64_t megatron_index::document_begin(std::uint64_t i) const noexcept {
  auto sequence = static_cast<std::uint64_t>(document(i));
  return sequence == sequences_ ? tokens_ : sequence_begin(sequence) / element_bytes(type_);
}

}  // namespace lade::io
