// Bytes that can be read at any offset, and bytes that come one after the other: what files,
// objects in a store, members of archives and memory have in common.

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

// Random access to bytes whose number is fixed: a file, an object in a store, a member of an
// archive. A parser that takes one works on all of them.
//
// Any thread may read, any number of reads may be in flight, and the reader and the memory must
// outlive them. Reads require a runtime unless the reader says otherwise. They throw `error` naming
// the operation and name(), and error(stopped) if the caller is cancelled.
class byte_reader {
 public:
  virtual ~byte_reader() = default;

  // What errors call it: a path, a URL without secrets, "a.tar/x.jpg".
  virtual const std::string& name() const noexcept = 0;

  virtual std::uint64_t size() const = 0;

  // The entity tag of the bytes that are read, without quotes: as long as an object has the same
  // strong tag, it has the same bytes. Empty if there is none, as of a file.
  virtual std::string_view etag() const noexcept { return {}; }

  // Whether read_at(offset, bytes) returns views of memory instead of copies. Such a reader needs
  // no chunks.
  virtual bool is_in_memory() const noexcept { return false; }

  // Fills `into` with the bytes from `offset` on. Returns how many were read: fewer than asked for
  // only at the end. Throws error(invalid_argument) for a range that no file can have.
  virtual task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const = 0;

  // The `bytes` bytes from `offset`, in memory of the caller's pool; a reader over memory returns a
  // view of it. Throws error(invalid_data) if they are not all there, before anything is allocated.
  virtual task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const;

 protected:
  byte_reader() = default;
  byte_reader(const byte_reader&) = default;
  byte_reader& operator=(const byte_reader&) = default;

  // Throws error(invalid_data) if the range is not inside of [0, size()).
  void require_inside(std::uint64_t offset, std::uint64_t bytes) const;
};

// Bytes in memory. Needs no runtime.
class memory_reader final : public byte_reader {
 public:
  // `name`: what errors call it; of a URL, without its secrets.
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

// A part of the bytes of another reader: a member of an archive.
class part_reader final : public byte_reader {
 public:
  // Throws error(invalid_data) if the range is not inside of `whole`.
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
  std::uint64_t offset = 0;                        // where to begin
  std::size_t chunk_bytes = std::size_t{1} << 20;  // size of each buffer but the last
};

// The bytes of a reader in order, as buffers in memory of the caller's pool, none of them empty. A
// buffer may be kept; the next is read when it is asked for. Throws error(invalid_argument) for
// chunks of no bytes or an offset behind the end.
async_generator<buffer> stream(std::shared_ptr<const byte_reader> from,
                               stream_options options = {});

// Reads a stream in pieces of the caller's sizes: what parsers of streams are written with. One
// coroutine at a time.
class stream_reader {
 public:
  // `name`: what errors call the stream; of a URL, without its secrets.
  stream_reader(async_generator<buffer> from, std::string name);

  // Reads `from`, which must not be null, from its first byte on, in chunks of `chunk_bytes`; a
  // reader in memory is one chunk. The rest of a piece that exceeds its chunk is read directly into
  // the memory of the piece, and skipped bytes are not read. Suited to files: each chunk of an
  // object in a store is a request, where stream() sends one request. Throws
  // error(invalid_argument) if `chunk_bytes` is 0.
  explicit stream_reader(std::shared_ptr<const byte_reader> from,
                         std::size_t chunk_bytes = std::size_t{256} << 10);

  const std::string& name() const noexcept { return name_; }

  // How many bytes have been read or skipped.
  std::uint64_t position() const noexcept { return position_; }

  // Whether there are no more bytes. Waits for the next ones.
  task<bool> at_end();

  // The next `bytes` bytes: a view of the stream's buffer if they are in one, else a copy in memory
  // of the caller's pool. Throws error(invalid_data) if the stream ends before, naming `what` was
  // to be read and the position. A copy of a stream's bytes is allocated in steps, so that a size
  // that only a damaged header claims costs no more than 16 MiB, or twice the bytes that are there.
  task<buffer> read(std::size_t bytes, std::string_view what);

  // The same if they are in the stream's buffer; otherwise nothing, and nothing is waited for. For
  // loops over many small pieces.
  std::optional<buffer> try_read(std::size_t bytes) {
    if (bytes > ready_.size()) return std::nullopt;
    return take(bytes);
  }

  // The rest of what the stream has ready, at most `most` bytes and at least one; empty at the end.
  task<buffer> read_some(std::size_t most);

  // Passes over bytes. Throws as read does.
  task<> skip(std::uint64_t bytes, std::string_view what);

 private:
  task<bool> fill();
  task<> require(std::uint64_t missing, std::string_view what);
  void require_left(std::uint64_t bytes, std::string_view what);
  task<buffer> read_apart(std::size_t bytes, std::string_view what);
  buffer take(std::size_t bytes);
  error early_end(std::uint64_t missing, std::string_view what) const;

  std::optional<async_generator<buffer>> from_;  // a stream, or
  std::shared_ptr<const byte_reader> reader_;    // a reader
  std::uint64_t end_ = 0;                        // of the reader
  std::size_t chunk_bytes_ = 0;
  std::string name_;
  buffer ready_;  // not yet read
  std::uint64_t position_ = 0;
};

}  // namespace lade
