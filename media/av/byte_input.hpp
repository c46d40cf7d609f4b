// Inputs of FFmpeg's demuxers: bytes in memory, or a reader that a thread blocks on.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/context.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>

namespace lade::media {

// Random access for FFmpeg's callbacks, which block. One thread at a time.
class byte_input {
 public:
  virtual ~byte_input() = default;

  virtual std::uint64_t size() const = 0;

  // Whether a read costs no more than a copy.
  virtual bool is_in_memory() const noexcept { return true; }

  // Fills `into` from `offset` on. Returns the number of bytes: fewer only at the end.
  virtual std::size_t read(std::span<std::byte> into, std::uint64_t offset) = 0;

  // The number of bytes that were read.
  std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 protected:
  std::uint64_t bytes_read_ = 0;
};

class memory_input final : public byte_input {
 public:
  explicit memory_input(buffer content) noexcept : content_(std::move(content)) {}

  std::uint64_t size() const override { return content_.size(); }
  std::size_t read(std::span<std::byte> into, std::uint64_t offset) override;

 private:
  buffer content_;
};

// Reads on the reactor and blocks the calling thread, which must not belong to the CPU pool.
class blocking_input final : public byte_input {
 public:
  explicit blocking_input(std::shared_ptr<const byte_reader> from) noexcept
      : from_(std::move(from)) {}

  // Sets the context of later reads: their runtime and stop token. It must outlive them.
  void set_context(const context& current) noexcept { context_ = &current; }

  std::uint64_t size() const override { return from_->size(); }
  bool is_in_memory() const noexcept override { return false; }
  std::size_t read(std::span<std::byte> into, std::uint64_t offset) override;

 private:
  std::shared_ptr<const byte_reader> from_;
  const context* context_ = nullptr;
};

}  // namespace lade::media
