// Verifies checksums of whole objects that servers send with them.

#pragma once

#include "transfer.hpp"

#include <lade/checksum.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <openssl/evp.h>

namespace lade::io::http {

// Encodes base64 (RFC 4648, section 4).
std::string base64(std::string_view bytes);

// MD5 or SHA-256 of bytes that arrive in pieces.
class message_digest {
 public:
  // Throws std::bad_alloc. A digest that this machine's OpenSSL refuses is not valid().
  explicit message_digest(const EVP_MD* kind);

  bool valid() const noexcept { return context_ != nullptr; }
  void update(std::span<const std::byte> bytes);
  std::string value();  // the digest's bytes; call once

 private:
  struct free_context {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, free_context> context_;
};

// The checksum that a response states for a whole object, and the checksum of the bytes received.
class object_checksum {
 public:
  // Returns the first of these checksums in the headers of a response with status 200, in base64:
  //
  //   CRC32C     x-amz-checksum-crc32c, x-goog-hash
  //   CRC64NVME  x-amz-checksum-crc64nvme
  //   SHA-256    x-amz-checksum-sha256, Repr-Digest (RFC 9530), Digest (RFC 3230)
  //   MD5        x-goog-hash, Content-MD5 (RFC 1864), Digest
  //
  // Returns nothing if there is none. Skips checksums of other bytes: composite ones, and
  // x-goog-hash of an object that the server has decompressed. Skips invalid texts, too.
  static std::optional<object_checksum> stated_by(const response_head& head);

  void update(std::span<const std::byte> bytes);

  // Returns a text naming the algorithm if the checksums differ, else an empty one. Call once.
  std::string mismatch();

 private:
  using algorithm = std::variant<crc32c, crc64nvme, message_digest>;

  object_checksum(std::string_view name, std::string_view stated, algorithm checksum)
      : name_(name), stated_(stated), computed_(std::move(checksum)) {}

  std::string_view name_;
  std::string stated_;  // in base64
  algorithm computed_;
};

// Adds bytes to a checksum, large numbers on the CPU pool, so that no reactor thread is delayed.
// Both arguments must outlive the task.
task<> update_checksum(object_checksum& into, std::span<const std::byte> bytes);

}  // namespace lade::io::http
