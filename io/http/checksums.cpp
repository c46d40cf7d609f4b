#include "checksums.hpp"

#include <lade/continue_on.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

message_digest::message_digest(const EVP_MD* kind) : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  if (!EVP_DigestInit_ex(context_.get(), kind, nullptr)) context_.reset();
}

void message_digest::update(std::span<const std::byte> bytes) {
  if (!EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size())) throw std::bad_alloc();
}

std::string message_digest::value() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  if (!EVP_DigestFinal_ex(context_.get(), bytes.data(), &size)) throw std::bad_alloc();
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  text.pop_back();  // OpenSSL's terminating zero
  return text;
}

static std::string big_endian(std::uint64_t value, std::size_t bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes));
  return text;
}

// The value of "name=value" in all headers of that name, each a list; empty if there is none. A
// value between colons is a byte sequence (RFC 8941).
static std::string_view list_member(const response_head& head, std::string_view header,
                                    std::string_view name) noexcept {
  for (auto& [each, value] : head.headers) {
    if (!equal_ignoring_case(each, header)) continue;
    for (std::string_view rest = value; !rest.empty();) {
      auto member = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), member.size() + 1));
      member = without_blanks(member);
      auto equals = member.find('=');
      if (equals == std::string_view::npos || !equal_ignoring_case(member.substr(0, equals), name))
        continue;
      member.remove_prefix(equals + 1);
      bool is_sequence = member.size() >= 2 && member.front() == ':' && member.back() == ':';
      return is_sequence ? member.substr(1, member.size() - 2) : member;
    }
  }
  return {};
}

// The first text with the length of a checksum of `bytes` bytes in base64. Composite checksums,
// "...-3", are longer.
static std::string_view first_of_size(std::initializer_list<std::string_view> texts,
                                      std::size_t bytes) noexcept {
  for (auto text : texts)
    if (text.size() == 4 * ((bytes + 2) / 3)) return text;
  return {};
}

// Whether the server has decompressed the object: Google's headers describe it as stored.
static bool is_transcoded(const response_head& head) noexcept {
  auto stored = head.value("x-goog-stored-content-encoding");
  if (stored == "identity") stored = {};
  return !stored.empty() && stored != head.value("content-encoding");
}

std::optional<object_checksum> object_checksum::stated_by(const response_head& head) {
  if (head.status != 200) return std::nullopt;
  bool is_composite = equal_ignoring_case(head.value("x-amz-checksum-type"), "composite");
  auto amazon = [&](std::string_view header) {
    return is_composite ? std::string_view() : head.value(header);
  };
  auto google = [&](std::string_view name) {
    return is_transcoded(head) ? std::string_view() : list_member(head, "x-goog-hash", name);
  };
  auto text = first_of_size({amazon("x-amz-checksum-crc32c"), google("crc32c")}, 4);
  if (!text.empty()) return object_checksum("CRC32C", text, crc32c());
  text = first_of_size({amazon("x-amz-checksum-crc64nvme")}, 8);
  if (!text.empty()) return object_checksum("CRC64NVME", text, crc64nvme());
  text =
      first_of_size({amazon("x-amz-checksum-sha256"), list_member(head, "repr-digest", "sha-256"),
                     list_member(head, "digest", "sha-256")},
                    32);
  if (!text.empty()) return object_checksum("SHA-256", text, message_digest(EVP_sha256()));
  text = first_of_size(
      {google("md5"), head.value("content-md5"), list_member(head, "digest", "md5")}, 16);
  if (text.empty()) return std::nullopt;
  message_digest md5(EVP_md5());
  if (!md5.valid()) return std::nullopt;
  return object_checksum("MD5", text, std::move(md5));
}

void object_checksum::update(std::span<const std::byte> bytes) {
  std::visit([&](auto& sum) { sum.update(bytes); }, computed_);
}

std::string object_checksum::mismatch() {
  std::string bytes;
  if (auto* sum = std::get_if<crc32c>(&computed_))
    bytes = big_endian(sum->value(), 4);
  else if (auto* longer = std::get_if<crc64nvme>(&computed_))
    bytes = big_endian(longer->value(), 8);
  else
    bytes = std::get<message_digest>(computed_).value();
  auto found = base64(bytes);
  if (found == stated_) return {};
  return fmt::format("the body has the {} {}, the server states {}", name_, found, stated_);
}

task<> update_checksum(object_checksum& into, std::span<const std::byte> bytes) {
  constexpr std::size_t few = std::size_t{256} << 10;
  if (bytes.size() > few) co_await continue_on_pool();
  into.update(bytes);
}

}  // namespace lade::io::http
