// Asynchronous reads of files, and of objects behind URLs. The reactor executes them; no thread
// blocks.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lade {

namespace detail {

// An open descriptor, which the destructor closes; see close_descriptor. `holder`: the context that
// is counted as its holder; null if it is not counted.
class descriptor {
 public:
  explicit descriptor(int fd, const context* holder = nullptr) noexcept
      : fd_(fd), holder_(holder) {}
  descriptor(descriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), holder_(other.holder_) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(holder_, other.holder_);
    return *this;
  }
  ~descriptor();

  int get() const noexcept { return fd_; }

  // The same descriptor, counted as held by `holder`.
  descriptor held_by(const context* holder) && noexcept {
    return descriptor(std::exchange(fd_, -1), holder);
  }

 private:
  int fd_;
  const context* holder_;
};

class read;

}  // namespace detail

namespace io {

// How whole files that are not in the page cache are read. Cached bytes are always copied from it.
enum class page_cache : std::uint8_t {
  // The first condition that holds decides for each file:
  //
  //   1. The process reads the file for the first time, while at least eight operations are in
  //      flight: bypass. The run waits for the disk, and these reads take half the time.
  //   2. The page cache has capacity for the file: fill. Later epochs find the file there.
  //   3. The page cache has no capacity: bypass. A data set larger than the memory would evict, in
  //      each epoch, the pages that the next epoch reads first.
  //
  // The capacity is half of the memory that is available when the process reads its first file.
  // Files of less than 32 KiB always fill the page cache. So do all files if the kernel does not
  // report which pages are cached (before Linux 6.5, in some sandboxes).
  automatic,
  fill,    // through the page cache
  bypass,  // O_DIRECT, if the file system supports it
};

struct read_options {
  io::page_cache page_cache = io::page_cache::automatic;
};

// Information about a file, a directory, or an object behind a URL.
struct file_info {
  enum class kind : std::uint8_t { regular, directory, other };

  kind type = kind::regular;
  std::uint64_t size_bytes = 0;

  // Time of the last modification. For an object behind a URL it is always the epoch, 1970-01-01
  // 00:00 UTC, even if the server sends a time.
  std::chrono::sys_time<std::chrono::nanoseconds> modified;
};

// An open file, or an open object behind a URL, which is read by ranges (see store.hpp).
//
// Tasks require a runtime. They throw `error` naming the operation and the file ("read
// train/x.jpg: Input/output error"), or error(stopped) if the caller is cancelled. The destructor
// closes the file, without blocking the reactor's thread.
class file final : public byte_reader {
 public:
  const std::string& path() const noexcept { return path_; }
  const std::string& name() const noexcept override { return path_; }

  // Returns the current information of the file system (fstat). For an object behind a URL, returns
  // its size when it was opened, and no time of modification. Throws error if the call fails.
  file_info info() const;
  std::uint64_t size() const override { return info().size_bytes; }

  // Fills `into` with the bytes from `offset` on. Returns their number, which is smaller than
  // into.size() only at the end of the file. Any number of reads may be in flight; the file and the
  // memory must outlive them. Throws error(invalid_argument) naming the file and the offset if
  // `offset` exceeds 2^63 - 1 - into.size(), as a converted negative number does.
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override;
  task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const override;

  // The entity tag of an object behind a URL; empty for a file.
  std::string_view etag() const noexcept override {
    return object_ ? object_->etag() : std::string_view();
  }

 private:
  friend task<std::optional<file>> open_unless(std::string path, bool may_be_absent, int flags);

  file(detail::descriptor opened, std::string path) noexcept
      : descriptor_(std::move(opened)), path_(std::move(path)) {}
  explicit file(std::shared_ptr<const byte_reader> object)
      : descriptor_(-1), path_(object->name()), object_(std::move(object)) {}

  detail::descriptor descriptor_;
  std::string path_;
  std::shared_ptr<const byte_reader> object_;  // null for a file
};

// Opens a file for reading. `path`: a path or a URL. If the process has no free descriptor, waits
// until lade closes a file. Throws the error of the system if every holder of a descriptor waits
// for another one. A program that keeps more files open than its limit waits forever, so read and
// close files in the stage that opens them.
task<file> open(std::string path);

// The same, but returns nullopt if the file does not exist. Throws for any other failure.
task<std::optional<file>> try_open(std::string path);

// The same for code that reads from any byte_reader, such as the parser of an archive.
task<std::shared_ptr<const byte_reader>> open_reader(std::string path);

// Yields the bytes of a file in order; see lade::stream. The first next() opens the file and throws
// as `open` does. A pipe requires an offset of 0.
async_generator<buffer> stream(std::string path, stream_options options = {});

// Returns the information about a file or directory. Opens an object behind a URL for its size.
task<file_info> stat(std::string path);

// Returns the content of a whole file, or of an object behind a URL, in memory of the caller's pool
// (see allocate).
//
// Size. The memory has the size of the file when it is opened. If the file grows during the read,
// the new bytes are not read; if it shrinks, the buffer is shorter. Files without a size (of /proc,
// pipes) are read to their end.
//
// Memory. While the read waits for memory, the file is closed; afterwards it is opened again. If
// the file has grown during each of three waits, its memory exceeds the limit.
//
// Descriptors. Whole-file reads use at most half of the descriptors that the process may open;
// further reads wait. Pipes stay open while they wait for memory: at most another quarter of the
// descriptors. The memory of further pipes exceeds the limit.
task<buffer> read_file(std::string path, read_options options = {});

}  // namespace io

// The type of io::read.
class detail::read {
 public:
  // The concurrency of a stage that sets none: with fewer reads in flight, disks are idle.
  static constexpr unsigned default_concurrency = 64;

  constexpr explicit read(io::read_options options = {}) noexcept : options_(options) {}

  task<sample> operator()(sample from) const;

  constexpr read with(io::read_options options) const noexcept { return read(options); }

 private:
  io::read_options options_;
};

namespace io {

// Returns the sample with the content of the file or object that its key names:
//
//   lade::from(lade::io::files("train", "**/*.jpg")) | lade::map(lade::io::read)
//   lade::map(lade::io::read.with({.page_cache = lade::io::page_cache::bypass}))
//
// A function object, so that statistics name the stage "read".
inline constexpr detail::read read;

}  // namespace io
}  // namespace lade
