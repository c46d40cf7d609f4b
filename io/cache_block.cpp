#include "cache_block.hpp"

#include <lade/checksum.hpp>
#include <lade/url.hpp>

#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace lade::detail {

std::array<char, 32> block_key::digits() const noexcept {
  std::array<char, 32> result;
  fmt::format_to(result.data(), "{:016x}{:016x}", high, low);
  return result;
}

static std::uint64_t little_endian(const std::byte* from, std::size_t bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(from[i]);
  return value;
}

struct sip_state {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void add(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
  std::uint64_t finish() noexcept {
    for (int i = 0; i < 4; ++i) round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

block_key siphash128(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t k0 = 0x0706050403020100, k1 = 0x0f0e0d0c0b0a0908;
  sip_state state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
                  k1 ^ 0x7465646279746573};
  auto length = static_cast<std::uint64_t>(bytes.size());
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) state.add(little_endian(bytes.data(), 8));
  state.add(length << 56 | little_endian(bytes.data(), bytes.size()));
  state.v2 ^= 0xee;
  auto first = state.finish();
  state.v1 ^= 0xdd;
  return {first, state.finish()};
}

// URLs of an object that differ only in their signature have the same key. If memory to compare
// them is exhausted, the key differs, which only costs a miss.
static block_key key_of_object(std::string_view url) noexcept {
  std::string named;
  try {
    if (url.find('?') != std::string_view::npos) url = named = without_signature(url);
  } catch (const std::bad_alloc&) {}
  return siphash128(std::as_bytes(std::span(url)));
}

block_key key_of_block(const block_key& store, std::string_view url, std::uint64_t block_bytes,
                       std::uint64_t number) noexcept {
  auto object = key_of_object(url);
  std::uint64_t words[] = {store.high, store.low, object.high, object.low, block_bytes, number};
  return siphash128(std::as_bytes(std::span(words)));
}

static void put_number(std::string& into, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) into += static_cast<char>(value >> (8 * i));
}

static constexpr std::string_view block_magic = "ladeblk1";

std::string encode_label(const block_label& label) {
  auto most_name = most_label_bytes - label_end_bytes - label.etag.size();
  std::string text(label.name.substr(0, most_name));
  auto name_bytes = text.size();
  text += label.etag;
  text += block_magic;
  for (auto value :
       {label.key.high, label.key.low, label.object_bytes, label.offset, label.content_bytes})
    put_number(text, value, 8);
  put_number(text, name_bytes, 4);
  put_number(text, label.etag.size(), 4);
  put_number(text, label.content_crc, 4);
  put_number(text, crc32c(std::as_bytes(std::span(text))).value(), 4);
  return text;
}

static std::string_view label_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<block_label> decode_label(std::span<const std::byte> end, std::uint64_t file_bytes) {
  if (end.size() < label_end_bytes || end.size() > file_bytes) return std::nullopt;
  auto* numbers = end.data() + end.size() - label_end_bytes;
  if (std::memcmp(numbers, block_magic.data(), block_magic.size()) != 0) return std::nullopt;
  auto name_bytes = little_endian(numbers + 48, 4);
  auto etag_bytes = little_endian(numbers + 52, 4);
  auto bytes = label_end_bytes + name_bytes + etag_bytes;
  if (bytes > most_label_bytes || bytes > end.size()) return std::nullopt;
  end = end.last(bytes);
  if (crc32c(end.first(bytes - 4)).value() != little_endian(numbers + 60, 4)) return std::nullopt;
  block_label label;
  label.key = {little_endian(numbers + 8, 8), little_endian(numbers + 16, 8)};
  label.object_bytes = little_endian(numbers + 24, 8);
  label.offset = little_endian(numbers + 32, 8);
  label.content_bytes = little_endian(numbers + 40, 8);
  label.content_crc = static_cast<std::uint32_t>(little_endian(numbers + 56, 4));
  label.name = label_text(end.first(name_bytes));
  label.etag = label_text(end.subspan(name_bytes, etag_bytes));
  bool fits = label.content_bytes == file_bytes - bytes && label.offset <= label.object_bytes &&
              label.content_bytes <= label.object_bytes - label.offset;
  return fits ? std::optional(label) : std::nullopt;
}

bool has_content_of(const block_label& label, std::span<const std::byte> file) noexcept {
  auto content = file.first(static_cast<std::size_t>(label.content_bytes));
  return crc32c(content).value() == label.content_crc;
}

}  // namespace lade::detail
