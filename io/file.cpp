#include "cached_calls.hpp"
#include "open_files.hpp"
#include "page_cache.hpp"
#include "whole_file.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/store.hpp>
#include <lade/reactor_operation.hpp>
#include <lade/runtime.hpp>
#include <lade/support/require.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade {

detail::descriptor::~descriptor() {
  if (fd_ < 0) return;
  close_descriptor(fd_);
  if (holder_) open_files::of_process().end_hold(holder_);
}

namespace io {

// Returns the result of a system call, or throws its error.
static std::int64_t file_check(std::int64_t result, std::string_view doing,
                               const std::string& path) {
  if (result >= 0) return result;
  auto operation = fmt::format("{} {}", doing, path);
  if (result == -ECANCELED) throw error(errc::stopped, operation);
  raise(static_cast<int>(-result), operation);
}

// Flags for files in lade's directories, which have only regular files. A FIFO placed there must
// not block the open, and a link must not be followed.
static constexpr int own_file_flags = O_NOFOLLOW | O_NONBLOCK;

static void require_own_file(int fd, const struct ::stat& found, const std::string& path) {
  if (!S_ISREG(found.st_mode)) throw error(errc::failed, "open " + path, "it is no regular file");
  fcntl(fd, F_SETFL, 0);  // O_NONBLOCK
}

static reactor_operation open_call(const std::string& path, int directory = AT_FDCWD,
                                   int flags = 0) {
  return reactor_operation::open(directory, path.c_str(), O_RDONLY | O_CLOEXEC | flags);
}

// A file is read in pieces, so that cancellation waits only for pieces in flight. A cached piece is
// copied in a fraction of a millisecond. A piece of direct I/O is long enough for the disk's full
// throughput.
static constexpr std::size_t cached_piece_bytes = std::size_t{1} << 20;
static constexpr std::size_t direct_piece_bytes = std::size_t{4} << 20;

// Larger copies are made on another thread than the reactor's. The hand-over takes as long as
// copying a tenth of that.
static constexpr std::size_t large_copy_bytes = std::size_t{256} << 10;

// The operation that reads the next piece. A stream is read on the reactor, since a blocking read
// elsewhere could not be cancelled.
static reactor_operation read_call(int fd, std::span<std::byte> into, std::uint64_t offset,
                                   bool is_stream, bool direct = false) {
  auto most = is_stream ? large_copy_bytes : direct ? direct_piece_bytes : cached_piece_bytes;
  bool apart = !is_stream && !direct && into.size() > large_copy_bytes;
  return reactor_operation::read(fd, into.first(std::min(into.size(), most)), offset,
                                 {.direct = direct, .apart = apart});
}

// The largest alignment that O_DIRECT requires of offsets, lengths and addresses.
static constexpr std::size_t direct_bytes = 4096;

// Smaller files gain little from direct I/O, and lose the kernel's read-ahead.
static constexpr std::size_t small_bytes = std::size_t{32} << 10;

static std::size_t whole_pages(std::size_t bytes) {
  return (bytes + direct_bytes - 1) / direct_bytes * direct_bytes;
}

// With this many operations in flight, a run waits for the disk. A run that waits for something
// else has few: it starts a read whenever an item is consumed.
static constexpr std::size_t hurried_operations = 8;

static bool is_hurried() { return operations_in_flight() >= hurried_operations; }

static bool should_bypass(int fd, const struct ::stat& found, bool hurried) {
  auto bytes = static_cast<std::uint64_t>(found.st_size);
  auto& use = detail::page_cache_use::of_process();
  if (bytes < small_bytes || !use.should_probe()) return false;
  auto missing = detail::uncached_bytes(fd, bytes).value_or(0);
  return use.should_bypass(found.st_dev + found.st_ino, missing, hurried);
}

// Decides whether a file is read past the page cache, and sets O_DIRECT if so. Returns whether it
// did.
static bool bypass_page_cache(int fd, const struct ::stat& found, page_cache policy, bool hurried) {
  if (policy == page_cache::fill) return false;
  if (policy == page_cache::automatic
          ? !should_bypass(fd, found, hurried)
          : detail::uncached_bytes(fd, static_cast<std::uint64_t>(found.st_size)) == 0)
    return false;
  return fcntl(fd, F_SETFL, O_DIRECT) == 0;
}

static file_info::kind kind_of(unsigned mode) {
  if (S_ISREG(mode)) return file_info::kind::regular;
  return S_ISDIR(mode) ? file_info::kind::directory : file_info::kind::other;
}

static file_info make_info(unsigned mode, std::uint64_t size, std::int64_t seconds,
                           std::int64_t nanoseconds) {
  auto time = std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanoseconds);
  return {kind_of(mode), size, std::chrono::sys_time<std::chrono::nanoseconds>(time)};
}

static struct ::stat stat_of(int fd, const std::string& path) {
  struct ::stat found;
  if (fstat(fd, &found) != 0) raise(errno, "stat " + path);
  return found;
}

file_info file::info() const {
  if (object_) return {file_info::kind::regular, object_->size(), {}};
  auto found = stat_of(descriptor_.get(), path_);
  return make_info(found.st_mode, static_cast<std::uint64_t>(found.st_size), found.st_mtim.tv_sec,
                   found.st_mtim.tv_nsec);
}

task<std::size_t> file::read_at(std::span<std::byte> into, std::uint64_t offset) const {
  constexpr auto last = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  support::require_count("read " + path_, "offset", offset,
                         {.most = last - std::min<std::uint64_t>(into.size(), last)});
  if (object_) co_return co_await object_->read_at(into, offset);
  auto& current = co_await this_context_reference();
  int fd = descriptor_.get();
  std::size_t done = 0;
  while (auto copied = detail::read_cached(current, fd, into.subspan(done), offset + done, path_))
    done += copied;
  auto left = into.size() - done;
  bool is_stream = left > large_copy_bytes && !S_ISREG(stat_of(fd, path_).st_mode);
  while (done < into.size()) {
    auto result = co_await read_call(fd, into.subspan(done), offset + done, is_stream);
    if (file_check(result, "read", path_) == 0) break;
    done += static_cast<std::size_t>(result);
  }
  co_return done;
}

task<buffer> file::read_at(std::uint64_t offset, std::size_t bytes) const {
  return object_ ? object_->read_at(offset, bytes) : byte_reader::read_at(offset, bytes);
}

static bool lacks_descriptor(std::int64_t opened) { return opened == -EMFILE || opened == -ENFILE; }

// Retries an open that failed for lack of descriptors, after each close of a file. Retries once
// more if no close can follow, since the last one may have been in between. `holder`: see
// open_files.
static task<std::int64_t> open_later(const std::string& path, const context* holder,
                                     int directory = AT_FDCWD, int flags = 0) {
  while (true) {
    bool closed = co_await detail::open_files::of_process().closed(holder);
    auto opened = co_await open_call(path, directory, flags);
    if (!closed || !lacks_descriptor(opened)) co_return opened;
  }
}

task<std::optional<file>> open_unless(std::string path, bool may_be_absent, int flags) {
  auto& current = co_await this_context_reference();
  if (auto store = find_store(path)) {
    auto object = co_await store->open(std::move(path), may_be_absent);
    if (!object) co_return std::nullopt;
    co_return file(std::move(object));
  }
  path = local_path(std::move(path));
  std::int64_t opened = detail::open_cached(current, AT_FDCWD, path);
  if (opened < 0) opened = co_await open_call(path, AT_FDCWD, flags);
  if (lacks_descriptor(opened)) opened = co_await open_later(path, &current, AT_FDCWD, flags);
  if (may_be_absent && (opened == -ENOENT || opened == -ENOTDIR)) co_return std::nullopt;
  auto fd = static_cast<int>(file_check(opened, "open", path));
  detail::descriptor opened_now(fd);  // closes it if hold() throws bad_alloc
  if (flags == own_file_flags) require_own_file(fd, stat_of(fd, path), path);
  detail::open_files::of_process().hold(&current);
  co_return file(std::move(opened_now).held_by(&current), std::move(path));
}

task<file> open(std::string path) {
  auto opened = co_await open_unless(std::move(path), false, 0);
  co_return std::move(*opened);
}

task<std::optional<file>> try_open(std::string path) {
  return open_unless(std::move(path), true, 0);
}

task<std::optional<file>> try_open_own(std::string path) {
  return open_unless(std::move(path), true, own_file_flags);
}

task<std::shared_ptr<const byte_reader>> open_reader(std::string path) {
  auto opened = co_await open(std::move(path));
  co_return std::make_shared<const file>(std::move(opened));
}

static async_generator<buffer> stream_pipe(file from, std::size_t chunk_bytes) {
  while (true) {
    auto chunk = co_await allocate(chunk_bytes);
    auto bytes = co_await from.read_at(chunk.bytes(), 0);
    if (bytes == 0) co_return;
    auto filled = chunk.slice(0, bytes);
    co_yield filled;
  }
}

static async_generator<buffer> begin_stream(file from, const stream_options& options) {
  if (from.info().type == file_info::kind::other && options.offset == 0)
    return stream_pipe(std::move(from), options.chunk_bytes);
  return lade::stream(std::make_shared<const file>(std::move(from)), options);
}

static async_generator<buffer> open_and_stream(std::string path, stream_options options) {
  auto from = co_await open(std::move(path));
  auto chunks = begin_stream(std::move(from), options);
  while (auto* chunk = co_await chunks.next()) co_yield *chunk;
}

// Keeps the store alive as long as its stream.
static async_generator<buffer> stream_of([[maybe_unused]] std::shared_ptr<const store> from,
                                         async_generator<buffer> chunks) {
  while (auto* chunk = co_await chunks.next()) co_yield *chunk;
}

async_generator<buffer> stream(std::string path, stream_options options) {
  support::require_count("stream " + without_secrets(path), "chunk_bytes", options.chunk_bytes,
                         {.least = 1});
  if (auto store = find_store(path)) {
    auto chunks = store->stream(std::move(path), options);
    return stream_of(std::move(store), std::move(chunks));
  }
  return open_and_stream(std::move(path), options);
}

task<file_info> stat(std::string path) {
  if (find_store(path)) {
    auto object = co_await open(std::move(path));
    co_return object.info();
  }
  path = local_path(std::move(path));
  struct statx found{};
  auto call = reactor_operation::stat(AT_FDCWD, path.c_str(), 0, found);
  file_check(co_await call, "stat", path);
  co_return make_info(found.stx_mode, found.stx_size, found.stx_mtime.tv_sec,
                      found.stx_mtime.tv_nsec);
}

using read_permit = detail::open_files::permit;

// The first buffer for a file of unknown size.
static constexpr std::size_t unsized_bytes = std::size_t{64} << 10;

// Returns the content in at least twice the memory. While it waits for memory, the file stays open,
// since closing a pipe loses its data. But it yields its slot: the item that the run waits for may
// need one. If too many reads have yielded, it allocates beyond the memory limit.
static task<buffer> enlarge(buffer content, read_permit& permit) {
  auto bytes = std::max(unsized_bytes, 2 * content.size());
  auto& current = co_await this_context_reference();
  auto larger = try_allocate(current, bytes);
  if (!larger && !permit.yield_slot()) larger = allocate_now(current, bytes);
  if (!larger) larger = co_await allocate(bytes);
  std::ranges::copy(content.bytes(), larger->data());
  co_return std::move(*larger);
}

// Returns the first `bytes` bytes. Copies them to smaller memory if they fill less than half and
// memory is available.
static buffer trim(const context& current, const buffer& content, std::size_t bytes) {
  std::optional<buffer> smaller;
  if (bytes < content.size() / 2) smaller = try_allocate(current, bytes);
  if (!smaller) return content.slice(0, bytes);
  std::ranges::copy(content.bytes().first(bytes), smaller->data());
  return *std::move(smaller);
}

// Reads a file of unknown size, at first into `content`.
static task<buffer> read_to_end(int fd, const std::string& path, std::optional<buffer> content,
                                read_permit& permit) {
  auto& current = co_await this_context_reference();
  auto all = content ? std::move(*content) : buffer();
  std::size_t done = 0;
  while (true) {
    if (done == all.size()) all = co_await enlarge(std::move(all), permit);
    auto result = co_await read_call(fd, all.bytes().subspan(done), done, true);
    if (file_check(result, "read", path) == 0) co_return trim(current, all, done);
    done += static_cast<std::size_t>(result);
  }
}

// The hot path of reading files. It is one coroutine: each further one would cost a hundredth of
// reading a cached file of 4 KiB. `path` must outlive the await.
//
// Memory: a read waits for memory without an open file. Otherwise, waiting reads could use up the
// descriptors that the item needs which the run waits for. Then it opens the file again, since its
// size may have changed. After most_waits such waits, it allocates beyond the limit, so that the
// read of a growing file ends. A pipe stays open, since closing it loses its data.
//
// `is_absent`: if not null, a missing file is not a failure but sets it; and `directory` is one of
// lade's directories.
static task<buffer> read_whole(const std::string& path, read_options options,
                               int directory = AT_FDCWD, bool* is_absent = nullptr) {
  constexpr int most_waits = 3;
  auto& current = co_await this_context_reference();
  std::optional<buffer> content;
  std::size_t awaited_bytes = 0;
  int waits = 0;
  while (true) {
    if (awaited_bytes > 0) content = co_await allocate(awaited_bytes);
    auto permit = co_await detail::open_files::of_process().read_whole();
    std::int64_t opened = detail::open_cached(current, directory, path);
    bool is_foreign = is_absent && opened < 0;  // it may be something other than a regular file
    int flags = is_foreign ? own_file_flags : 0;
    if (opened < 0) opened = co_await open_call(path, directory, flags);
    if (lacks_descriptor(opened)) opened = co_await open_later(path, nullptr, directory, flags);
    if (is_absent && opened == -ENOENT) {
      *is_absent = true;
      co_return buffer();
    }
    auto fd = static_cast<int>(file_check(opened, "open", path));
    detail::descriptor from(fd);
    auto found = stat_of(fd, path);
    if (is_foreign) require_own_file(fd, found, path);
    auto size = static_cast<std::size_t>(found.st_size);
    bool is_pipe = size == 0 && !S_ISREG(found.st_mode);
    bool direct = size > 0 && bypass_page_cache(fd, found, options.page_cache, is_hurried());
    auto wanted_bytes = size == 0 ? unsized_bytes : direct ? whole_pages(size) : size;
    if (content && content->size() < wanted_bytes) content.reset();
    if (!content) content = try_allocate(current, wanted_bytes);
    if (!content && waits == most_waits) content = allocate_now(current, wanted_bytes);
    if (!content && !is_pipe) {
      ++waits;
      awaited_bytes = wanted_bytes;
      options.page_cache = direct ? page_cache::bypass : page_cache::fill;
      continue;
    }
    if (size == 0) co_return co_await read_to_end(fd, path, std::move(content), permit);
    auto* device = direct ? &detail::direct_reads::at(found.st_dev) : nullptr;
    std::size_t done = 0;
    while (done < size) {
      auto rest = content->bytes().subspan(done);
      auto copied = direct ? 0 : detail::read_cached(current, fd, rest, done, path);
      done += copied;
      if (copied > 0) continue;
      detail::direct_reads::share in_flight;
      if (direct) in_flight = co_await device->acquire(std::min(rest.size(), direct_piece_bytes));
      auto result = co_await read_call(fd, rest, done, false, direct);
      if (direct && result % static_cast<std::int64_t>(direct_bytes) != 0) {  // the end of the file
        direct = false;
        fcntl(fd, F_SETFL, 0);
        if (result == -EINVAL) continue;  // the file system refuses O_DIRECT only now
      }
      if (file_check(result, "read", path) == 0) break;
      done += static_cast<std::size_t>(result);
    }
    done = std::min(done, size);  // the file may have grown
    co_return done == content->size() ? *std::move(content) : content->slice(0, done);
  }
}

task<buffer> read_if_there(int directory, const std::string& name, bool& is_absent) {
  return read_whole(name, {}, directory, &is_absent);
}

task<buffer> read_file(std::string path, read_options options) {
  if (auto store = find_store(path)) co_return co_await store->read(std::move(path));
  path = local_path(std::move(path));
  co_return co_await read_whole(path, options);
}

}  // namespace io

static task<sample> read_url(sample from, io::read_options options) {
  auto store = io::find_store(from.key());
  if (!store) {  // a URL of a file, or a path
    auto content = co_await io::read_file(from.key(), options);
    co_return std::move(from).with_data(std::move(content));
  }
  auto content = co_await store->read(from.key());
  co_return std::move(from).with_data(std::move(content));
}

static task<sample> read_path(sample from, io::read_options options) {
  auto content = co_await io::read_whole(from.key(), options);
  co_return std::move(from).with_data(std::move(content));
}

task<sample> detail::read::operator()(sample from) const {
  bool is_path = scheme_of(from.key()).empty() && from.key().find('\0') == std::string::npos;
  if (is_path) return read_path(std::move(from), options_);
  return read_url(std::move(from), options_);
}

}  // namespace lade
