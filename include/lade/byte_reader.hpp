// Random and sequential access to bytes, whether they are in a file, an object of a store, a member
// of an archive, or memory.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lade {

// Random access to a fixed number of bytes: a file, an object of a store, a member of an archive. A
// parser of a byte_reader works on all of them.
//
// - Lifetime: the reader and the memory must outlive the reads.
// - Thread: any; any number of reads may be in flight.
// - Runtime: reads require one, unless the reader says otherwise.
// - Errors: reads throw `error` naming the operation and name(), and error(stopped) if the caller
//   is cancelled.
class byte_reader {
 public:
  virtual ~byte_reader() = default;

  // The name in errors: a path, a URL without secrets, "a.tar/x.jpg".
  virtual const std::string& name() const noexcept = 0;

  // The number of bytes.
  virtual std::uint64_t size() const = 0;

  // The entity tag of the bytes, without quotes. As long as the strong tag of an object is the
  // same, so are its bytes. Empty if there is none, as for a file.
  virtual std::string_view etag() const noexcept { return {}; }

  // Whether read_at(offset, bytes) returns views of memory instead of copies. Such a reader needs
  // no chunks.
  virtual bool is_in_memory() const noexcept { return false; }

  // Reads bytes from `offset` into `into`. Returns how many: fewer than into.size() only at the
  // end. Throws error(invalid_argument) for a range that no file can have.
  virtual task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const = 0;

  // Reads `bytes` bytes from `offset` into memory of the caller's pool; a reader over memory
  // returns a view of it. Throws error(invalid_data), before it allocates, if the range exceeds the
  // bytes.
  virtual task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const;

 protected:
  byte_reader() = default;
  byte_reader(const byte_reader&) = default;
  byte_reader& operator=(const byte_reader&) = default;

  // Throws error(invalid_data) if the range is not inside [0, size()).
  void require_inside(std::uint64_t offset, std::uint64_t bytes) const;
};

// Reads bytes in memory. Needs no runtime.
class memory_reader final : public byte_reader {
 public:
  // `name`: the name in errors; the secrets of a URL are removed.
  explicit memory_reader(buffer content, std::string name = "memory");

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return content_.size(); }
  bool is_in_memory() const noexcept override { return true; }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override;
  task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const override;

 private:
  buffer content_;
  std::string name_;
};

// Reads a part of the bytes of another reader, such as a member of an archive.
class part_reader final : public byte_reader {
 public:
  // Throws error(invalid_data) if the range is not inside `whole`.
  part_reader(std::shared_ptr<const byte_reader> whole, std::uint64_t offset, std::uint64_t bytes,
              std::string name);

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return bytes_; }
  bool is_in_memory() const noexcept override { return whole_->is_in_memory(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override;
  task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const override;

 private:
  std::shared_ptr<const byte_reader> whole_;
  std::uint64_t offset_;
  std::uint64_t bytes_;
  std::string name_;
};

struct stream_options {
  std::uint64_t offset = 0;                        // first byte to read
  std::size_t chunk_bytes = std::size_t{1} << 20;  // bytes of each buffer but the last
};

// The bytes of a reader in order, as non-empty buffers in memory of the caller's pool. The consumer
// may keep a buffer. The next one is read on demand. Throws error(invalid_argument) if
// `options.chunk_bytes` is 0 or `options.offset` is behind the end.
async_generator<buffer> stream(std::shared_ptr<const byte_reader> from,
                               stream_options options = {});

// Reads a stream in pieces of sizes that the caller chooses, for parsers of streams. One coroutine
// at a time.
class stream_reader {
 public:
  // `name`: the name of the stream in errors; the secrets of a URL are removed.
  stream_reader(async_generator<buffer> from, std::string name);

  // Reads `from`, which must not be null, from its first byte in chunks of `chunk_bytes`. A reader
  // in memory is one chunk. Throws error(invalid_argument) if `chunk_bytes` is 0.
  //
  // If a piece exceeds its chunk, the rest is read directly into the memory of the piece. Skipped
  // bytes are not read. Suited to files; of an object in a store each chunk is a request, whereas
  // stream() sends one request for all.
  explicit stream_reader(std::shared_ptr<const byte_reader> from,
                         std::size_t chunk_bytes = std::size_t{256} << 10);

  const std::string& name() const noexcept { return name_; }

  // The number of bytes read or skipped so far.
  std::uint64_t position() const noexcept { return position_; }

  // Whether the stream has ended. Waits for the next bytes.
  task<bool> at_end();

  // Returns the next `bytes` bytes: a view of the stream's buffer if that contains all, otherwise a
  // copy in memory of the caller's pool. Throws error(invalid_data) with `what` and the position if
  // the stream ends before.
  //
  // A copy is allocated in steps. So a size from a damaged header costs at most 16 MiB, or twice
  // the bytes that exist.
  task<buffer> read(std::size_t bytes, std::string_view what);

  // The same if the stream's buffer contains all bytes; otherwise returns nothing, without waiting.
  // For loops over many small pieces.
  std::optional<buffer> try_read(std::size_t bytes) {
    if (bytes > ready_.size()) return std::nullopt;
    return take(bytes);
  }

  // Returns the bytes that the stream has ready, at most `most`. Waits until there is at least one.
  // Empty at the end.
  task<buffer> read_some(std::size_t most);

  // Skips `bytes` bytes. Throws as read() does.
  task<> skip(std::uint64_t bytes, std::string_view what);

 private:
  task<bool> fill();
  task<> require(std::uint64_t missing, std::string_view what);
  void require_left(std::uint64_t bytes, std::string_view what);
  task<buffer> read_apart(std::size_t bytes, std::string_view what);
  buffer take(std::size_t bytes);
  error early_end(std::uint64_t missing, std::string_view what) const;

  std::optional<async_generator<buffer>> from_;  // the stream; or
  std::shared_ptr<const byte_reader> reader_;    // the reader
  std::uint64_t end_ = 0;                        // size of the reader
  std::size_t chunk_bytes_ = 0;
  std::string name_;
  buffer ready_;  // bytes not consumed yet
  std::uint64_t position_ = 0;
};

}  // namespace lade
