// A store of objects in memory that counts what is asked of it.

#pragma once

#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/io/store.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::test {

inline buffer buffer_of(std::string_view text) {
  buffer bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

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

  // "URL offset+bytes" of each request for a part; bytes are those that were there.
  std::vector<std::string> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t count() const { return requests().size(); }
  void forget_requests() {
    std::lock_guard lock(mutex_);
    requests_.clear();
  }

  // What all requests wait for, if set.
  std::shared_ptr<event> gate;

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
    auto part = find(url, 0, ~std::size_t{0}, "");
    co_return std::make_shared<const memory_reader>(part.content(), url);
  }
  async_generator<buffer> stream(std::string url, stream_options options) const override {
    auto part = find(url, options.offset, ~std::size_t{0}, "");
    auto content = part.content();
    if (!content.empty()) co_yield content;
  }

 private:
  io::object_part find(const std::string& url, std::uint64_t offset, std::size_t bytes,
                       const std::string& etag) const {
    std::lock_guard lock(mutex_);
    auto found = objects_.find(url);
    if (found == objects_.end()) throw error(errc::failed, "read " + url, "no such object");
    auto& [content, tag] = found->second;
    if (!etag.empty() && etag != tag)
      throw error(errc::invalid_data, "read " + url, "the object has changed");
    auto begin = std::min<std::uint64_t>(offset, content.size());
    auto part = content.substr(begin, bytes);
    requests_.push_back(url + " " + std::to_string(offset) + "+" + std::to_string(part.size()));
    return {buffer_of(part), content.size(), tag};
  }

  mutable std::mutex mutex_;
  std::map<std::string, object> objects_;      // guarded by mutex_
  mutable std::vector<std::string> requests_;  // guarded by mutex_
};

}  // namespace lade::test
