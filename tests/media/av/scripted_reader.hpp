// A reader whose reads complete later than they are asked for, and fail or stop where a test says.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/sleep.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace lade::test {

class scripted_reader final : public byte_reader {
 public:
  explicit scripted_reader(buffer content) noexcept : content_(std::move(content)) {}

  // Called at the start and at the end of each read with its number, from 0; may throw.
  std::function<void(int)> before;
  std::function<void(int)> after;

  // Awaited in each read.
  std::function<task<>()> during;

  int reads() const noexcept { return reads_; }
  std::uint64_t bytes() const noexcept { return bytes_; }  // that all reads returned

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return content_.size(); }

  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    const int number = reads_++;
    if (before) before(number);
    if (during) co_await during();
    co_await sleep(std::chrono::microseconds(1));
    const auto begin = std::min<std::uint64_t>(offset, content_.size());
    const auto rest = content_.bytes().subspan(static_cast<std::size_t>(begin));
    const auto count = std::min(into.size(), rest.size());
    std::copy_n(rest.begin(), count, into.begin());
    bytes_ += count;
    if (after) after(number);
    co_return count;
  }
  using byte_reader::read_at;

 private:
  buffer content_;
  std::string name_ = "scripted.bin";
  mutable std::atomic<int> reads_ = 0;
  mutable std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace lade::test
