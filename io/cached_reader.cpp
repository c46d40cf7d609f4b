#include "disk_cache_state.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/io/file.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lade::io {

// Thread-safe. Keeps the file of the last block open: ranges are often close to each other. An
// evicted file stays readable.
class cached_reader final : public byte_reader {
 public:
  cached_reader(std::shared_ptr<disk_cache::state> cache, cached_entity entity)
      : cache_(std::move(cache)),
        entity_(std::move(entity)),
        name_(without_secrets(entity_.url())) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return entity_.bytes(); }
  std::string_view etag() const noexcept override { return entity_.etag(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override;
  task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const override;

 private:
  using shared_file = std::shared_ptr<const file>;

  std::uint64_t bytes_of(std::uint64_t number) const noexcept {
    return std::min<std::uint64_t>(cache_->block_bytes,
                                   entity_.bytes() - number * cache_->block_bytes);
  }
  shared_file file_of(std::uint64_t number) const;
  void keep_file(std::uint64_t number, shared_file opened) const;
  task<shared_file> open_verified(std::uint64_t number) const;
  task<buffer> read_through(std::uint64_t offset, std::size_t bytes) const;
  task<> read_in_block(std::uint64_t number, std::span<std::byte> into, std::uint64_t offset) const;

  std::shared_ptr<disk_cache::state> cache_;
  cached_entity entity_;
  std::string name_;
  mutable std::mutex mutex_;
  mutable std::uint64_t number_ = 0;  // the block of file_; both are guarded by mutex_
  mutable shared_file file_;
};

std::shared_ptr<const byte_reader> make_cached_reader(std::shared_ptr<disk_cache::state> cache,
                                                      cached_entity entity) {
  return std::make_shared<const cached_reader>(std::move(cache), std::move(entity));
}

cached_reader::shared_file cached_reader::file_of(std::uint64_t number) const {
  std::lock_guard lock(mutex_);
  return number == number_ ? file_ : nullptr;
}

void cached_reader::keep_file(std::uint64_t number, shared_file opened) const {
  std::lock_guard lock(mutex_);
  number_ = number;
  std::swap(file_, opened);
}

// The file of a block of the entity, if this process has verified its content; null if the block
// must be read as a whole.
task<cached_reader::shared_file> cached_reader::open_verified(std::uint64_t number) const {
  auto key = cache_->key_of(entity_.url(), number);
  auto found = co_await open_block(*cache_, key);
  if (!found) co_return nullptr;
  auto& label = found->label;
  bool fits = cache_->is_verified(key, label.content_crc) && found->etag == entity_.etag() &&
              label.object_bytes == entity_.bytes() && label.offset == number * cache_->block_bytes;
  if (!fits) co_return nullptr;
  keep_file(number, found->from);
  co_return std::move(found->from);
}

task<> cached_reader::read_in_block(std::uint64_t number, std::span<std::byte> into,
                                    std::uint64_t offset) const {
  auto from = into.size() < bytes_of(number) ? file_of(number) : nullptr;
  if (!from && into.size() < bytes_of(number)) from = co_await open_verified(number);
  if (from) {
    auto got = co_await from->read_at(into, offset);
    if (got == into.size()) {
      cache_->directory.use().record_use(cache_->key_of(entity_.url(), number));
      ++cache_->hits;
      cache_->hit_bytes += got;
      co_return;
    }
  }
  auto block = co_await obtain_block(*cache_, entity_.url(), number, &entity_);
  if (block) {
    std::memcpy(into.data(), block->content().data() + offset, into.size());
    co_return;
  }
  auto part = co_await read_through(number * cache_->block_bytes + offset, into.size());
  std::memcpy(into.data(), part.data(), part.size());
}

// Reads only the requested bytes: a block without space in the cache would be fetched again for
// each range in it.
task<buffer> cached_reader::read_through(std::uint64_t offset, std::size_t bytes) const {
  ++cache_->refused;
  cache_->directory.refuse(bytes);
  auto part = co_await fetch_part(*cache_, entity_.url(), offset, bytes, &entity_);
  co_return part.content().slice(0, bytes);  // the store may have returned the whole object
}

task<std::size_t> cached_reader::read_at(std::span<std::byte> into, std::uint64_t offset) const {
  if (offset >= size()) co_return 0;
  into = into.first(std::min<std::uint64_t>(into.size(), size() - offset));
  for (std::size_t done = 0; done < into.size();) {
    auto number = (offset + done) / cache_->block_bytes;
    auto begin = offset + done - number * cache_->block_bytes;
    auto bytes = std::min<std::uint64_t>(into.size() - done, bytes_of(number) - begin);
    co_await read_in_block(number, into.subspan(done, bytes), begin);
    done += bytes;
  }
  co_return into.size();
}

// Returns a large part of a block as a view of it.
task<buffer> cached_reader::read_at(std::uint64_t offset, std::size_t bytes) const {
  require_inside(offset, bytes);
  auto number = offset / cache_->block_bytes;
  auto begin = offset - number * cache_->block_bytes;
  bool is_view = bytes > 0 && begin + bytes <= bytes_of(number) && bytes >= bytes_of(number) / 2;
  if (!is_view) co_return co_await byte_reader::read_at(offset, bytes);
  auto block = co_await obtain_block(*cache_, entity_.url(), number, &entity_);
  if (!block) co_return co_await read_through(offset, bytes);
  co_return block->content().slice(static_cast<std::size_t>(begin), bytes);
}

}  // namespace lade::io
