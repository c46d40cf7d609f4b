// Checksums of whole objects that servers send with them, and their comparison.

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

// RFC 4648, section 4.
std::string base64(std::string_view bytes);

// MD5 or SHA-256 of bytes that come in pieces.
class message_digest {
 public:
  // Throws std::bad_alloc. A digest that the OpenSSL of this machine refuses is not valid().
  explicit message_digest(const EVP_MD* kind);

  bool valid() const noexcept { return context_ != nullptr; }
  void update(std::span<const std::byte> bytes);
  std::string value();  // its bytes; once

 private:
  struct free_context {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, free_context> context_;
};

// The checksum that a response states for a whole object, and the one of the bytes that have come.
class object_checksum {
 public:
  // The first of these that the headers of a response with the status 200 state, in base64:
  //
  //   CRC32C     x-amz-checksum-crc32c, x-goog-hash
  //   CRC64NVME  x-amz-checksum-crc64nvme
  //   SHA-256    x-amz-checksum-sha256, Repr-Digest (RFC 9530), Digest (RFC 3230)
  //   MD5        x-goog-hash, Content-MD5 (RFC 1864), Digest
  //
  // Nothing if there is none. Those of other bytes are passed over: composite ones, and x-goog-hash
  // of an object that the server has decompressed. So are texts that are no such checksum.
  static std::optional<object_checksum> stated_by(const response_head& head);

  void update(std::span<const std::byte> bytes);

  // What is wrong, naming the algorithm; empty if the bytes have the stated checksum. Once.
  std::string mismatch();

 private:
  using algorithm = std::variant<crc32c, crc64nvme, message_digest>;

  object_checksum(std::string_view name, std::string_view stated, algorithm checksum)
      : name_(name), stated_(stated), computed_(std::move(checksum)) {}

  std::string_view name_;
  std::string stated_;  // in base64
  algorithm computed_;
};

// Adds bytes to a checksum: many by the CPU pool, so that no reactor's thread is held up. Both must
// outlive the task.
task<> update_checksum(object_checksum& into, std::span<const std::byte> bytes);

}  // namespace lade::io::http
