// Object stores that speak the S3 interface: Amazon's, Google's interoperable one, MinIO, Ceph,
// Swift and others.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/io/http/client.hpp>
#include <lade/io/store.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lade::io::http {

// Who sends requests. Its texts are secrets: nothing of lade prints them.
class s3_credentials {
 public:
  using time = std::chrono::system_clock::time_point;

  s3_credentials(std::string access_key, std::string secret_key, std::string session_token = {},
                 time expires = time::max())
      : access_key_(std::move(access_key)),
        secret_key_(std::move(secret_key)),
        session_token_(std::move(session_token)),
        expires_(expires) {}

  const std::string& access_key() const noexcept { return access_key_; }
  const std::string& secret_key() const noexcept { return secret_key_; }
  const std::string& session_token() const noexcept { return session_token_; }
  time expires() const noexcept { return expires_; }

 private:
  std::string access_key_;
  std::string secret_key_;
  std::string session_token_;
  time expires_;
};

// Gives the credentials for the requests that follow. Called again, by one request for all, when
// those that it gave last are about to expire or were refused.
using s3_credentials_function = std::function<task<s3_credentials>()>;

// Credentials from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
// Nothing if the first two are not set.
std::optional<s3_credentials> s3_credentials_from_environment();

struct s3_options {
  // "https://s3.eu-central-1.amazonaws.com"; if empty, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or
  // Amazon's of the region.
  std::string_view endpoint = {};

  // If empty, AWS_REGION, AWS_DEFAULT_REGION, or "us-east-1".
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
// `credentials`, or, if that is empty, from the environment. Without any, requests are refused, but
// for `anonymous`.
//
// Keys are bytes: "s3://bucket/a b" names the key "a b". Any thread.
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

  // A part of an object; its size and entity tag; writing one of up to 5 GiB; and removing one.
  task<response> get(std::string url, byte_range range = {}) const;
  task<response> head(std::string url) const;
  task<response> put(std::string url, buffer content) const;
  task<response> remove(std::string url) const;

  struct state;

 private:
  std::shared_ptr<const state> state_;
};

}  // namespace lade::io::http
