// Streams: queues of work on a GPU.

#pragma once

#include <lade/cuda/device.hpp>
#include <lade/cuda/event.hpp>

#include <memory>

struct CUstream_st;  // of <cuda_runtime.h>: a cudaStream_t is a pointer to it

namespace lade::cuda {

namespace detail {

// The default stream that a null handle means in the file that includes this header.
enum class null_stream : bool { legacy, of_thread };
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
static constexpr null_stream null_stream_here = null_stream::of_thread;
#else
static constexpr null_stream null_stream_here = null_stream::legacy;
#endif

}  // namespace detail

struct stream_options {
  int priority = 0;  // lower numbers run first; clamped to the range of the device
};

// A stream: work that is queued on it runs in order. Copies refer to the same stream. There is no
// move; a moved-from stream is still a copy, because an empty stream would be CUDA's default
// stream.
//
//   lade::cuda::stream mine(lade::cuda::device(0));
//   kernel<<<blocks, threads, 0, mine.handle()>>>(...);
//   co_await mine;  // resumes when the kernel has finished; no thread waits
//
// Thread: any, concurrently, as CUDA allows.
//
// Not yet run on a GPU: tested only with a fake driver.
class stream {
 public:
  // Creates a stream, which does not synchronise with the legacy default stream. The last copy
  // destroys it; queued work still runs. Throws error.
  explicit stream(device on, const stream_options& options = {});
  stream(const stream&) = default;
  stream& operator=(const stream&) = default;

  // Returns a stream of other code, such as a framework, which must outlive all copies. A null
  // handle is CUDA's default stream, as for calls of CUDA in the same file: per_thread_default() if
  // the file is compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM (nvcc's --default-stream
  // per-thread), otherwise legacy_default(). Omit the last argument: its default detects that.
  static stream external(CUstream_st* handle, device on,
                         detail::null_stream null = detail::null_stream_here) {
    if (!handle && null == detail::null_stream::of_thread) return per_thread_default(on);
    return stream(handle, on);
  }

  // CUDA's default streams: the stream that all threads share, and the stream of the calling
  // thread.
  static stream legacy_default(device on);
  static stream per_thread_default(device on);

  CUstream_st* handle() const noexcept { return handle_; }
  device on() const noexcept { return on_; }

  // Makes work that is queued from now on wait for the event. No thread waits. Throws error.
  void wait(const event& earlier) const;

  // Returns an event after all queued work. Throws error.
  event record() const;

  // Whether all queued work has finished. Throws error if some of it has failed.
  bool is_idle() const;

  // Blocks until all queued work has finished. Throws error if some of it has failed, and
  // error(wrong_thread) on a thread of a runtime: await the stream there.
  void synchronize() const;

  // `co_await stream` is `co_await stream.record()`.
  event::awaiter operator co_await() const { return record().operator co_await(); }

 private:
  stream(CUstream_st* handle, device on) noexcept : handle_(handle), on_(on) {}

  CUstream_st* handle_;
  device on_;
  std::shared_ptr<void> own_;  // null for external streams
};

}  // namespace lade::cuda
