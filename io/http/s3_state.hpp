// The state that the functions of a store share: its location, and the making of its requests.

#pragma once

#include "credential_cache.hpp"
#include "sigv4.hpp"

#include <lade/io/http/s3.hpp>
#include <lade/semaphore.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace lade::io::http {

// Parses "s3://bucket/key". Throws error(invalid_argument) for other texts.
struct s3_name {
  std::string bucket;
  std::string key;

  explicit s3_name(std::string_view url);
};

// The endpoint and region of a store.
class s3_location {
 public:
  // `endpoint`: empty for Amazon's endpoint of the region.
  s3_location(std::string region, std::string endpoint, std::optional<bool> path_style);

  // The HTTP URL of an object, for requests and signatures.
  std::string http_url(const s3_name& name, const std::string& query) const;

  const s3_signer& signer() const noexcept { return signer_; }
  const std::string& endpoint() const noexcept { return endpoint_; }

 private:
  void remove_default_port();

  bool is_amazons_;
  std::string endpoint_;
  std::optional<bool> path_style_;
  s3_signer signer_;
};

struct s3_store::state {
  state(const s3_options& options, client made, s3_credentials_function from);

  // The location of the store. The first call loads the profile if it needs it.
  task<std::shared_ptr<const s3_location>> location() const;

  std::string region;    // of the program or the environment; empty if neither states it
  std::string endpoint;  // likewise
  std::optional<bool> path_style;
  bool is_anonymous;
  bool requester_pays;
  client requests;
  std::shared_ptr<credential_cache> credentials;

 private:
  std::shared_ptr<const s3_location> known_location() const;
  void set_location(std::string of_region, std::string at_endpoint) const;

  mutable semaphore loading_{1};  // held while the profile is loaded
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const s3_location> location_;  // guarded by mutex_; null: not loaded yet
};

// The limit of responses other than objects. A page of a listing has at most 1000 keys of 1 KiB.
inline constexpr std::uint64_t most_answer_bytes = std::uint64_t{16} << 20;

// Makes a request to a store. `query`: encoded as percent_encoded does. Throws
// error(invalid_argument) for a URL without a key: the request would act on the whole bucket.
// - Each attempt signs the request again, with the attempt's headers.
// - If the server reports that the credentials have expired, the next attempt uses new ones.
// - A response to HEAD has no body for that report. So a refused HEAD is sent once more if its
//   credentials expire soon, or were replaced meanwhile.
task<request> make_s3_request(std::shared_ptr<const s3_store::state> store, std::string_view method,
                              std::string url, std::string query = {}, buffer body = {});

// The same for a GET of a bucket, which lists a part of its objects.
task<request> make_s3_listing_request(std::shared_ptr<const s3_store::state> store,
                                      std::string bucket_url, std::string query);

// Throws error(invalid_argument) for a URL that names no object of a bucket. `doing`: "upload".
void require_s3_key(std::string_view doing, std::string_view url);

}  // namespace lade::io::http
