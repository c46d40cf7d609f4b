// A reader of an object's content that a cache holds.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/io/store.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lade::io {

// The whole content, with the object's entity tag.
class kept_reader final : public byte_reader {
 public:
  kept_reader(object_part whole, std::string name)
      : memory_(whole.content(), std::move(name)), etag_(whole.etag()) {}

  const std::string& name() const noexcept override { return memory_.name(); }
  std::uint64_t size() const override { return memory_.size(); }
  std::string_view etag() const noexcept override { return etag_; }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    return memory_.read_at(into, offset);
  }
  task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const override {
    return memory_.read_at(offset, bytes);
  }

 private:
  memory_reader memory_;
  std::string etag_;
};

}  // namespace lade::io
