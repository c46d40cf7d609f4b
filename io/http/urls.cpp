#include "ranges.hpp"

#include <lade/error.hpp>
#include <lade/io/http/urls.hpp>

#include <memory>
#include <mutex>
#include <utility>

namespace lade::io::http {

class web_objects final : public store {
 public:
  explicit web_objects(client requests) : client_(std::move(requests)) {}

  task<buffer> read(std::string url) const override { return read_body(client_, std::move(url)); }
  task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                              std::string etag) const override {
    request request("GET", std::move(url));
    request.range = {offset, bytes};
    request.if_match = with_quotes(etag);
    return client_.get_part(std::move(request));
  }

  task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                bool may_be_absent) const override {
    return open_if_there(client_, std::move(url), may_be_absent);
  }
  async_generator<buffer> stream(std::string url, stream_options options) const override {
    return client_.stream(std::move(url), options);
  }

 private:
  static task<buffer> read_body(client from, std::string url) {
    auto got = co_await from.get(std::move(url));
    co_return got.body();
  }
  static task<std::shared_ptr<const byte_reader>> open_if_there(client from, std::string url,
                                                                bool may_be_absent) {
    try {
      co_return co_await from.open(std::move(url));
    } catch (const error& failure) {
      if (!may_be_absent || failure.code() != status_code(404)) throw;
    }
    co_return nullptr;
  }

  client client_;
};

std::shared_ptr<const store> web_store(client requests) {
  return std::make_shared<const web_objects>(std::move(requests));
}

// A store that is created at its first use: a program that only includes a header must not
// initialise libcurl nor read the environment.
class lazy_store final : public store {
 public:
  explicit lazy_store(std::shared_ptr<const store> (*make)()) noexcept : make_(make) {}

  task<buffer> read(std::string url) const override { return created().read(std::move(url)); }
  task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                bool may_be_absent) const override {
    return created().open(std::move(url), may_be_absent);
  }
  async_generator<buffer> stream(std::string url, stream_options options) const override {
    return created().stream(std::move(url), options);
  }
  task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                              std::string etag) const override {
    return created().read_part(std::move(url), offset, bytes, std::move(etag));
  }
  async_generator<object_info> list(std::string prefix) const override {
    return created().list(std::move(prefix));
  }
  task<std::string> identity() const override { return created().identity(); }

 private:
  const store& created() const {
    std::lock_guard lock(mutex_);
    if (!store_) store_ = make_();
    return *store_;
  }

  std::shared_ptr<const store> (*make_)();
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const store> store_;  // guarded by mutex_; constant once created
};

static std::shared_ptr<const store> make_default_web_store() { return web_store(client()); }

static std::shared_ptr<const store> make_default_s3_store() {
  return std::make_shared<const s3_store>();
}

// The store for Google Cloud Storage's interoperable interface, with HMAC keys in the variables of
// AWS.
static std::shared_ptr<const store> make_default_gs_store() {
  return std::make_shared<const s3_store>(s3_options{
      .endpoint = "https://storage.googleapis.com", .region = "auto", .path_style = true});
}

bool mount_defaults() {
  auto web = std::make_shared<const lazy_store>(make_default_web_store);
  mount_if_free("http://", web);
  mount_if_free("https://", web);
  mount_if_free("s3://", std::make_shared<const lazy_store>(make_default_s3_store));
  mount_if_free("gs://", std::make_shared<const lazy_store>(make_default_gs_store));
  return true;
}

}  // namespace lade::io::http
