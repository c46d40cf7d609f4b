// Object stores that speak the S3 interface: Amazon's, Google's interoperable one, MinIO, Ceph,
// Swift and others.

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

  // The size of the object if it is known: where 10,000 parts would be too small for it, they are
  // larger. 0: unknown.
  std::uint64_t object_bytes = 0;

  unsigned concurrency = 4;  // parts that are sent at a time, each in memory; 1 to 10,000
};

struct s3_options {
  // "https://s3.eu-central-1.amazonaws.com"; if empty, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, that
  // of the profile AWS_PROFILE (see s3_profile_credentials), or Amazon's of the region.
  std::string_view endpoint = {};

  // If empty, AWS_REGION, AWS_DEFAULT_REGION, that of the profile, or "us-east-1".
  std::string_view region = {};

  // Whether the bucket is a part of the path, "https://endpoint/bucket/key", rather than of the
  // host, "https://bucket.endpoint/key". If not given, it is where the endpoint is not Amazon's and
  // where the bucket's name has a dot, which no certificate covers.
  std::optional<bool> path_style = {};

  bool anonymous = false;       // requests are not signed
  bool requester_pays = false;  // who reads pays for it
};

// A store at "s3://bucket/key", for mount(): s3_store({.endpoint = "http://127.0.0.1:9000"}).
//
// Requests are made by `requests`, with its limits and attempts. Credentials come from
// `credentials`, or, if that is empty, from s3_default_credentials(). Without any, requests throw
// error(invalid_argument), except where `anonymous` is set. `credentials` must not send requests by
// `requests` or a copy of it, whose limits may be used up by those who wait for the credentials.
//
// Keys are bytes: "s3://bucket/a b" names the key "a b". No key is empty: but for list, a URL that
// ends behind the bucket, "s3://bucket/", is error(invalid_argument), for a request would make,
// list or remove the bucket itself. Any thread.
class s3_store final : public store {
 public:
  // Throws error(invalid_argument) for an endpoint that is no URL.
  explicit s3_store(const s3_options& options = {}, client requests = client(),
                    s3_credentials_function credentials = nullptr);

  task<buffer> read(std::string url) const override;
  task<std::shared_ptr<const byte_reader>> open(std::string url, bool may_be_absent) const override;
  async_generator<buffer> stream(std::string url, stream_options options) const override;

  task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                              std::string etag) const override;

  // All objects whose keys begin with that of `prefix`, a page of up to 1,000 at a time
  // (ListObjects version 2). The next page is asked for when the last one has been consumed.
  async_generator<object_info> list(std::string prefix) const override;

  // The endpoint. Where buckets of the same name belong to different accounts of one endpoint, the
  // stores of these accounts have the same identity.
  task<std::string> identity() const override;

  // A part of an object; its size and entity tag; writing one of up to 5 GiB; and removing one.
  task<response> get(std::string url, byte_range range = {}) const;
  task<response> head(std::string url) const;
  task<response> put(std::string url, buffer content) const;
  task<response> remove(std::string url) const;

  // Writes an object of any size up to 5 TiB from its content, in parts that are sent side by side
  // (multipart upload); one request where the content is no longer than a part. The object appears
  // when all parts are there. Memory: `concurrency` + 1 parts of the caller's pool.
  //
  // Each part is tried again by itself. If the upload fails, the parts that are on their way have
  // 10 seconds to end; if it is stopped, they are broken off. Then all parts are removed from the
  // server, for which it waits 10 seconds at most; if that fails, the error says so. A server that
  // stores a part which was broken off behind all that keeps it. The request that begins an
  // upload is tried again too: where only its answer was lost, the server keeps an upload without
  // parts, which holds no bytes and is not removed, since nobody can tell it from one that another
  // program has just begun (a lifecycle rule for incomplete uploads removes it). Throws
  // error(limit_exceeded) for a content of more than 10,000 parts, and error(invalid_argument) that
  // names an option that cannot work.
  task<object_info> upload(std::string url, async_generator<buffer> content,
                           s3_upload_options options = {}) const;
  task<object_info> upload(std::string url, buffer content, s3_upload_options options = {}) const;

  struct state;

 private:
  std::shared_ptr<const state> state_;
};

}  // namespace lade::io::http
