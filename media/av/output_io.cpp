#include "output_io.hpp"

#include <lade/media/av.hpp>

#include <new>
#include <span>
#include <utility>

extern "C" {
#include <libavutil/mem.h>
}

namespace lade::media {

// Creates an I/O context with a buffer. `read` or `write` is null.
static AVIOContext* new_av_io(void* self, int (*read)(void*, std::uint8_t*, int),
                              int (*write)(void*, written_byte*, int),
                              std::int64_t (*seek)(void*, std::int64_t, int)) {
  constexpr int bytes = 64 << 10;
  auto* memory = static_cast<unsigned char*>(check_av(av_malloc(bytes)));
  const int writes = write != nullptr ? 1 : 0;
  auto* made = avio_alloc_context(memory, bytes, writes, self, read, write, seek);
  if (made == nullptr) av_free(memory);
  return check_av(made);
}

output_io::output_io(byte_output& output, std::string name)
    : output_(output), name_(std::move(name)) {
  auto* seek = output_.can_seek() ? seek_bytes : nullptr;
  io_.reset(new_av_io(this, nullptr, write_bytes, seek));
}

void output_io::attach(AVFormatContext& muxer) {
  muxer.pb = io_.get();
  muxer.opaque = this;
  muxer.io_open = open_again;
  muxer.io_close2 = close_again;
}

int output_io::flush() {
  avio_flush(io_.get());
  return io_->error;
}

std::exception_ptr output_io::take_failure() noexcept { return std::exchange(failure_, nullptr); }

int output_io::write_bytes(void* self, written_byte* from, int bytes) noexcept {
  auto& io = *static_cast<output_io*>(self);
  try {
    const auto count = static_cast<std::size_t>(bytes);
    io.output_.write(std::as_bytes(std::span(from, count)), io.position_);
    io.position_ += count;
    return bytes;
  } catch (...) {
    if (!io.failure_) io.failure_ = std::current_exception();
    return AVERROR(EIO);
  }
}

// The offset after a seek; an error if it is invalid.
static std::int64_t sought(std::uint64_t position, std::uint64_t size, std::int64_t offset,
                           int whence) noexcept {
  if ((whence & AVSEEK_SIZE) != 0) return static_cast<std::int64_t>(size);
  const int from = whence & ~AVSEEK_FORCE;
  const auto base = from == SEEK_CUR ? position : from == SEEK_END ? size : 0;
  std::int64_t target = 0;
  if (__builtin_add_overflow(static_cast<std::int64_t>(base), offset, &target) || target < 0)
    return AVERROR(EINVAL);
  return target;
}

std::int64_t output_io::seek_bytes(void* self, std::int64_t offset, int whence) noexcept {
  auto& io = *static_cast<output_io*>(self);
  const auto target = sought(io.position_, io.output_.size(), offset, whence);
  if (target >= 0 && (whence & AVSEEK_SIZE) == 0) io.position_ = static_cast<std::uint64_t>(target);
  return target;
}

// A reading position in the bytes written so far.
struct output_io::reading {
  byte_output& from;
  std::uint64_t position = 0;
};

int output_io::read_again(void* from, std::uint8_t* into, int bytes) noexcept try {
  auto& state = *static_cast<reading*>(from);
  const auto room = std::as_writable_bytes(std::span(into, static_cast<std::size_t>(bytes)));
  const auto count = state.from.read(room, state.position);
  state.position += count;
  return count == 0 ? AVERROR_EOF : static_cast<int>(count);
} catch (...) {
  return AVERROR(EIO);
}

std::int64_t output_io::seek_again(void* from, std::int64_t offset, int whence) noexcept {
  auto& state = *static_cast<reading*>(from);
  const auto target = sought(state.position, state.from.size(), offset, whence);
  if (target >= 0 && (whence & AVSEEK_SIZE) == 0)
    state.position = static_cast<std::uint64_t>(target);
  return target;
}

int output_io::open_again(AVFormatContext* format, AVIOContext** opened, const char* url, int flags,
                          AVDictionary** /*options*/) noexcept try {
  auto& io = *static_cast<output_io*>(format->opaque);
  if (flags != AVIO_FLAG_READ || io.name_ != url || !io.output_.can_seek()) return AVERROR(EPERM);
  std::unique_ptr<reading> state(new reading{io.output_});
  *opened = new_av_io(state.get(), read_again, nullptr, seek_again);
  (void)state.release();
  return 0;
} catch (const std::bad_alloc&) {
  return AVERROR(ENOMEM);
}

int output_io::close_again(AVFormatContext* /*of*/, AVIOContext* io) noexcept {
  delete static_cast<reading*>(io->opaque);
  av_format_deleter()(io);
  return 0;
}

}  // namespace lade::media
