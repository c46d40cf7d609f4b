// A reader that counts the bytes read from another reader.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/task.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lade::media {

// Thread-safe if the source is. The source must not be null.
class byte_counter final : public byte_reader {
 public:
  explicit byte_counter(std::shared_ptr<const byte_reader> file) noexcept
      : source_(std::move(file)) {}

  std::uint64_t bytes_read() const noexcept { return bytes_; }

  const std::string& name() const noexcept override { return source_->name(); }
  std::uint64_t size() const override { return source_->size(); }
  std::string_view etag() const noexcept override { return source_->etag(); }
  bool is_in_memory() const noexcept override { return source_->is_in_memory(); }

  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    const auto count = co_await source_->read_at(into, offset);
    bytes_ += count;
    co_return count;
  }
  task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const override {
    auto content = co_await source_->read_at(offset, bytes);
    bytes_ += content.size();
    co_return content;
  }

 private:
  std::shared_ptr<const byte_reader> source_;
  mutable std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace lade::media
