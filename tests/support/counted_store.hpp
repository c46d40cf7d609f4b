// A store of objects in memory that records its requests.

#pragma once

#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/io/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_of.hpp"

namespace lade::test {

class counted_store final : public io::store {
 public:
  struct object {
    std::string content;
    std::string etag = "v1";
  };

  void put(const std::string& url, std::string content, std::string etag = "v1") {
    std::lock_guard lock(mutex_);
    objects_[url] = {std::move(content), std::move(etag)};
  }
  void remove(const std::string& url) {
    std::lock_guard lock(mutex_);
    objects_.erase(url);
  }

  // "URL offset+bytes" of each request; `bytes`: number of bytes that the store returned.
  std::vector<std::string> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t count() const { return requests().size(); }
  void forget_requests() {
    std::lock_guard lock(mutex_);
    requests_.clear();
  }

  // The result of identity().
  std::string name;

  // Whether each read of an opened object requests a part of it, with the entity tag that it had
  // when it was opened. The store must then outlive the opened object. Otherwise, open() fetches
  // the whole object.
  bool opens_ranges = false;

  // If set, all requests wait for this event.
  std::shared_ptr<event> gate;

  // If set, called with the number of each request, from 1 on. Must not be changed while a request
  // is in flight.
  std::function<void(std::size_t)> on_request;

  task<buffer> read(std::string url) const override {
    auto part = find(url, 0, ~std::size_t{0}, "");
    if (gate) co_await *gate;
    co_return part.content();
  }
  task<io::object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                                  std::string etag) const override {
    auto part = find(url, offset, bytes, etag);
    if (gate) co_await *gate;
    co_return part;
  }
  task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                bool may_be_absent) const override {
    {
      std::lock_guard lock(mutex_);
      if (may_be_absent && !objects_.contains(url)) co_return nullptr;
    }
    if (opens_ranges) {
      auto none = find(url, 0, 0, "");
      co_return std::make_shared<const range_reader>(*this, url, none.object_bytes(), none.etag());
    }
    auto part = find(url, 0, ~std::size_t{0}, "");
    co_return std::make_shared<const memory_reader>(part.content(), url);
  }
  async_generator<buffer> stream(std::string url, stream_options options) const override {
    auto part = find(url, options.offset, ~std::size_t{0}, "");
    auto content = part.content();
    if (!content.empty()) co_yield content;
  }

  task<std::string> identity() const override { co_return name; }

 private:
  class range_reader final : public byte_reader {
   public:
    range_reader(const counted_store& from, std::string url, std::uint64_t bytes, std::string etag)
        : from_(from), url_(std::move(url)), bytes_(bytes), etag_(std::move(etag)) {}

    const std::string& name() const noexcept override { return url_; }
    std::uint64_t size() const override { return bytes_; }
    std::string_view etag() const noexcept override { return etag_; }
    task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
      auto part = co_await from_.read_part(url_, offset, into.size(), etag_);
      auto bytes = part.content().size();
      if (bytes > 0) std::memcpy(into.data(), part.content().data(), bytes);
      co_return bytes;
    }
    using byte_reader::read_at;

   private:
    const counted_store& from_;
    std::string url_;
    std::uint64_t bytes_;
    std::string etag_;
  };

  io::object_part find(const std::string& url, std::uint64_t offset, std::size_t bytes,
                       const std::string& etag) const {
    std::size_t number = 0;
    auto part = look_up(url, offset, bytes, etag, number);
    if (on_request) on_request(number);
    return part;
  }

  io::object_part look_up(const std::string& url, std::uint64_t offset, std::size_t bytes,
                          const std::string& etag, std::size_t& number) const {
    std::lock_guard lock(mutex_);
    auto found = objects_.find(url);
    if (found == objects_.end()) throw error(errc::failed, "read " + url, "no such object");
    auto& [content, tag] = found->second;
    if (!etag.empty() && etag != tag)
      throw error(errc::changed, "read " + url, "the object has changed");
    auto begin = std::min<std::uint64_t>(offset, content.size());
    auto part = content.substr(begin, bytes);
    requests_.push_back(url + " " + std::to_string(offset) + "+" + std::to_string(part.size()));
    number = requests_.size();
    return {buffer_of(part), content.size(), tag};
  }

  mutable std::mutex mutex_;
  std::map<std::string, object> objects_;      // guarded by mutex_
  mutable std::vector<std::string> requests_;  // guarded by mutex_
};

}  // namespace lade::test
