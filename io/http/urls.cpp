#include <lade/error.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/url.hpp>

#include <utility>

namespace lade::io::http {

class web_objects final : public store {
 public:
  explicit web_objects(client requests) : client_(std::move(requests)) {}

  task<buffer> read(std::string url) const override { return read_body(client_, std::move(url)); }
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

// A client that is made when it is first needed: libcurl is not to be initialised by programs that
// only include a header.
class default_web_objects final : public store {
 public:
  task<buffer> read(std::string url) const override { return made().read(std::move(url)); }
  task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                bool may_be_absent) const override {
    return made().open(std::move(url), may_be_absent);
  }
  async_generator<buffer> stream(std::string url, stream_options options) const override {
    return made().stream(std::move(url), options);
  }

 private:
  static const store& made() {
    static const web_objects only{client()};
    return only;
  }
};

bool mount_defaults() {
  auto objects = std::make_shared<const default_web_objects>();
  mount_if_free("http://", objects);
  mount_if_free("https://", objects);
  return true;
}

}  // namespace lade::io::http
