// Files, read by the reactor: the awaiting thread computes on, and nothing blocks.

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

class reactor;

// An open descriptor, closed with the object: by the reactor when this is the reactor's thread,
// which must not wait for it, elsewhere at once. `holder` names who is counted as its holder, if it
// is counted.
class descriptor {
 public:
  descriptor(int fd, reactor* where, const context* holder = nullptr) noexcept
      : fd_(fd), reactor_(where), holder_(holder) {}
  descriptor(descriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), reactor_(other.reactor_), holder_(other.holder_) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(reactor_, other.reactor_);
    std::swap(holder_, other.holder_);
    return *this;
  }
  ~descriptor();

  int get() const noexcept { return fd_; }

  // The same for a program that has opened it by itself, where that has been noted.
  descriptor held_by(const context* holder) && noexcept {
    return {std::exchange(fd_, -1), reactor_, holder};
  }

 private:
  int fd_;
  reactor* reactor_;
  const context* holder_;
};

class read;

}  // namespace detail

namespace io {

// Where whole files go that the page cache does not have. What it has is copied from it.
enum class page_cache : std::uint8_t {
  // Past it at the first reading if the run waits for the disk (eight reads are in flight), which
  // passing by makes twice as fast; otherwise into it while it has room, so that later epochs find
  // them there. Without room past it: a data set that is larger than the memory would push out at
  // every epoch what the next would have found. Room is half of the memory that is available when
  // the process reads its first file. Files of less than 32 KiB always go into it; all files do
  // where the kernel does not report what it has cached (before Linux 6.5, in some sandboxes).
  automatic,
  fill,    // into it
  bypass,  // past it, where the file system can do that (O_DIRECT)
};

struct read_options {
  io::page_cache page_cache = io::page_cache::automatic;
};

struct file_info {
  enum class kind : std::uint8_t { regular, directory, other };

  kind type = kind::regular;
  std::uint64_t size_bytes = 0;
  std::chrono::sys_time<std::chrono::nanoseconds> modified;
};

// An open file. Its functions need a runtime, throw error with what they were doing to which
// file ("read train/x.jpg: Input/output error"), and error(stopped) when asked to stop.
//
// Also an object behind a URL (see store.hpp), read by ranges.
//
// Closed by the destructor, which does not wait on the reactor's thread.
class file final : public byte_reader {
 public:
  const std::string& path() const noexcept { return path_; }
  const std::string& name() const noexcept override { return path_; }

  // What the file system knows of the open file now; of an object behind a URL, its size when it
  // was opened. Does not wait.
  file_info info() const;
  std::uint64_t size() const override { return info().size_bytes; }

  // Fills `into` with the bytes from `offset` on. Returns fewer only at the end of the file. Any
  // number of reads may be in flight; the file and the memory must outlive them. Throws
  // error(invalid_argument) that names the file and the offset for one below 0, converted, or
  // beyond all files.
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override;
  task<buffer> read_at(std::uint64_t offset, std::size_t bytes) const override;

  // Of an object behind a URL; empty for a file.
  std::string_view etag() const noexcept override {
    return object_ ? object_->etag() : std::string_view();
  }

 private:
  friend task<std::optional<file>> open_unless(std::string path, bool may_be_absent, int flags);

  file(detail::descriptor opened, std::string path) noexcept
      : descriptor_(std::move(opened)), path_(std::move(path)) {}
  explicit file(std::shared_ptr<const byte_reader> object)
      : descriptor_(-1, nullptr), path_(object->name()), object_(std::move(object)) {}

  detail::descriptor descriptor_;
  std::string path_;
  std::shared_ptr<const byte_reader> object_;  // null for a file
};

// Opens a file for reading; the name is a path or a URL. Where the process has no descriptor left,
// waits for the next close of a file of lade, as long as one is held by somebody who does not wait
// for a descriptor; where all holders wait, it throws the system's error. So a program that keeps
// more files open than it may have waits for ever: read files and close them in the stage that
// opens them.
task<file> open(std::string path);

// The same, or nothing if there is no such file. Any other failure is thrown.
task<std::optional<file>> try_open(std::string path);

// An open file for code that reads anything: the parser of an archive.
task<std::shared_ptr<const byte_reader>> open_reader(std::string path);

// The bytes of a file in order, read when they are asked for; see lade::stream. Also of a pipe,
// whose offset must be 0. The first next() opens the file, and throws what open throws.
async_generator<buffer> stream(std::string path, stream_options options = {});

// What the file system knows of a file or directory, or a store of an object.
task<file_info> stat(std::string path);

// The content of a whole file, or object behind a URL, in memory from the pool of the surroundings
// (see allocate). The file's size when it is opened decides how much that is: of a file that grows
// meanwhile, what it had; of one that shrinks, what is left. After a wait for memory it is opened
// again; if it has grown in each of three waits, its memory goes beyond the limit. Files that do
// not know their size (those of /proc, pipes) are read to their end. At most half of the
// descriptors that the process may open are in use by such reads; further ones wait. Pipes that
// wait for memory stay open, beside these at most a quarter of the descriptors; the memory of
// further ones goes beyond the limit.
task<buffer> read_file(std::string path, read_options options = {});

}  // namespace io

// What io::read is.
class detail::read {
 public:
  // Of a stage that is not told another: few files at a time let disks idle, and threads sleep.
  static constexpr unsigned default_concurrency = 64;

  constexpr explicit read(io::read_options options = {}) noexcept : options_(options) {}

  task<sample> operator()(sample from) const;

  constexpr read with(io::read_options options) const noexcept { return read(options); }

 private:
  io::read_options options_;
};

namespace io {

// The sample with the content of the file that is its key:
//
//   lade::from(lade::io::files("train", "**/*.jpg")) | lade::map(lade::io::read)
//   lade::map(lade::io::read.with({.page_cache = lade::io::page_cache::bypass}))
//
// An object rather than a function, so that statistics call the stage "read".
inline constexpr detail::read read;

}  // namespace io
}  // namespace lade
