// AWS Signature Version 4, which authenticates requests to object stores
// (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).

#pragma once

#include <lade/io/http/client.hpp>
#include <lade/io/http/s3.hpp>

#include <array>
#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace lade::io::http {

// Percent-encodes every byte except letters, digits and "-._~" (RFC 3986, section 2.1), and '/' if
// `keeps_slashes`.
std::string percent_encoded(std::string_view text, bool keeps_slashes);

// SHA-256 in lower-case hexadecimal.
std::string sha256_text(std::string_view bytes);

// The entity tag of an object whose parts have these tags: the MD5 of the parts' MD5s, a dash, and
// the number of parts. Empty if a tag is no MD5.
std::string multipart_tag(std::span<const std::string> tags);

// Signs requests of one region. Caches the key of the day, which takes four of the five HMACs.
// Thread-safe.
class s3_signer {
 public:
  explicit s3_signer(std::string region) : region_(std::move(region)) {}

  // Adds the headers of a signature, which covers all headers, to `headers`. The URL's query must
  // be encoded as percent_encoded does. `body_hash`: the hash of the body, or UNSIGNED-PAYLOAD.
  void sign(std::string_view method, std::string_view url, http::header_list& headers,
            const s3_credentials& as, std::string_view body_hash,
            std::chrono::sys_seconds now) const;

 private:
  using key = std::array<unsigned char, 32>;

  key day_key(const s3_credentials& as, const std::string& day) const;

  std::string region_;
  mutable std::mutex mutex_;
  mutable std::string kept_for_;  // guarded by mutex_: the secret and the day of the kept key
  mutable key kept_{};
};

}  // namespace lade::io::http
