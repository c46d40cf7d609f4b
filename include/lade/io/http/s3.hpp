// Object stores with the S3 interface: Amazon S3, Google Cloud Storage (interoperable), MinIO,
// Ceph, Swift and others.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/io/http/client.hpp>
#include <lade/io/http/s3_credentials.hpp>
#include <lade/io/store.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lade::io::http {

struct s3_upload_options {
  // Size of all parts but the last, 5 MiB to 5 GiB. An object has at most 10,000 parts.
  std::size_t part_bytes = std::size_t{8} << 20;

  // The size of the object, if known. If it exceeds 10,000 parts of `part_bytes`, parts are larger.
  // 0: unknown.
  std::uint64_t object_bytes = 0;

  unsigned concurrency = 4;  // parts in flight, each in memory; 1 to 10,000
};

struct s3_options {
  // A URL with its scheme: "https://s3.eu-central-1.amazonaws.com". If empty, the first of
  // AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the endpoint of the profile AWS_PROFILE (see
  // s3_profile_credentials), and Amazon's endpoint of the region.
  std::string_view endpoint = {};

  // If empty, the first of AWS_REGION, AWS_DEFAULT_REGION, the region of the profile, and
  // "us-east-1".
  std::string_view region = {};

  // Whether the bucket is a part of the path, "https://endpoint/bucket/key", rather than of the
  // host, "https://bucket.endpoint/key". If not given: true for endpoints other than Amazon's, and
  // for buckets with a dot in their names, which the certificate of the host does not cover.
  std::optional<bool> path_style = {};

  bool anonymous = false;       // requests are not signed: for public buckets
  bool requester_pays = false;  // the account of the credentials pays for its requests
};

// A store at "s3://bucket/key", for mount(): s3_store({.endpoint = "http://127.0.0.1:9000"}).
//
// `requests` sends all requests, with its limits and retries. `credentials` returns the
// credentials; if it is empty, s3_default_credentials() does. Without credentials, requests throw
// error(invalid_argument), unless `anonymous` is set. `credentials` must not send requests by
// `requests` or a copy of it: requests that wait for the credentials may hold all of its permits.
//
// Keys are bytes: "s3://bucket/a b" names the key "a b". A URL without a key, "s3://bucket/", is
// error(invalid_argument) except for list(), because its requests would create, list or remove the
// bucket itself. Any thread may use a store.
class s3_store final : public store {
 public:
  // Throws error(invalid_argument) for an endpoint that is not a URL of http or https.
  explicit s3_store(const s3_options& options = {}, client requests = client(),
                    s3_credentials_function credentials = nullptr);

  task<buffer> read(std::string url) const override;
  task<std::shared_ptr<const byte_reader>> open(std::string url, bool may_be_absent) const override;
  async_generator<buffer> stream(std::string url, stream_options options) const override;

  task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                              std::string etag) const override;

  // Yields all objects whose keys begin with the key of `prefix` (ListObjects version 2). A page
  // has up to 1,000 objects; the next page is requested when the last one is consumed.
  async_generator<object_info> list(std::string prefix) const override;

  // Returns the endpoint. So stores of different accounts of one endpoint have the same identity,
  // also if both accounts have a bucket of the same name.
  task<std::string> identity() const override;

  // `get` returns an object or a part of it, `head` its size and entity tag; `put` writes an object
  // of up to 5 GiB; `remove` removes one. They throw as the functions of `client` do.
  task<response> get(std::string url, byte_range range = {}) const;
  task<response> head(std::string url) const;
  task<response> put(std::string url, buffer content) const;
  task<response> remove(std::string url) const;

  // Writes an object of up to 5 TiB from its content, in parts that are sent in parallel (multipart
  // upload). Content that is no longer than a part is one request. The object appears when all
  // parts are complete. Memory: `concurrency` + 1 parts of the caller's pool.
  //
  // Parts are retried one by one. If the upload fails, the parts in flight have 10 seconds to
  // complete; if it is stopped, they are cancelled. Then all parts are removed from the server, in
  // at most 10 seconds; if that fails, the error reports it. Two remainders are possible, which a
  // lifecycle rule for incomplete uploads removes:
  //
  //   - a cancelled part that the server stores after the removal;
  //   - an upload without parts, if the response to the request that starts an upload was lost. The
  //     request is retried; the first upload looks like one of another program, so it stays.
  //
  // Throws error(limit_exceeded) for content of more than 10,000 parts, and error(invalid_argument)
  // naming the option for a value out of range.
  task<object_info> upload(std::string url, async_generator<buffer> content,
                           s3_upload_options options = {}) const;
  task<object_info> upload(std::string url, buffer content, s3_upload_options options = {}) const;

  struct state;

 private:
  std::shared_ptr<const state> state_;
};

}  // namespace lade::io::http
