// Notifies coroutines when the GPU has passed an event.

#pragma once

#include <lade/cuda/event.hpp>
#include <lade/promise.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

struct CUstream_st;

namespace lade::cuda {

// The events that coroutines of a runtime await.
//
// Each awaited event has a side stream, which waits for the event and then calls back. Why not:
//   - on the event's own stream: the callback would delay the work after it
//   - one side stream for several events: the first event would delay the others
// The callback must not call CUDA, so it only sets a promise. A side stream is reused after its
// callback.
//
// After a device failure, callbacks are not called. So while events are awaited, a coroutine polls
// them every 10 to 100 ms, and sets the promises of events that have passed or failed.
//
//   entry:  waiting --callback or polling sets the promise--> answered
//           answered --callback was called, or the device has failed--> erased
//
// Only threads of the runtime erase entries, since that may destroy an event. A callback finds its
// entry by number. If it is called after the runtime has ended, it finds none.
class completion_watch {
 public:
  explicit completion_watch(runtime& runtime);
  completion_watch(const completion_watch&) = delete;
  ~completion_watch();

  struct watched {
    future<> happened;
    std::uint64_t number;
  };

  // `happened` is set when the event has passed, or when polling it fails. Throws error.
  watched watch(const event& awaited);

  // Call when the event is no longer awaited.
  void forget(std::uint64_t number);

 private:
  struct entry {
    entry(event passed, CUstream_st* on) : awaited(std::move(passed)), side(on) {}

    event awaited;
    CUstream_st* side;
    promise<> happened;
    bool answered = false;
    bool called = false;  // the callback was called: its side stream is free
  };

  // Shared with callbacks, which may outlive the runtime.
  struct registry {
    std::mutex mutex;  // guards the members below
    std::map<std::uint64_t, entry> entries;
    std::uint64_t next = 0;
    bool polling = false;                           // a coroutine polls
    std::map<int, std::vector<CUstream_st*>> idle;  // side streams, by device
    std::size_t side_streams = 0;

    void answer(std::uint64_t number, bool by_callback);
  };
  struct callback {
    std::shared_ptr<registry> to;
    std::uint64_t number;
  };

  static void call_back(void* argument) noexcept;
  static task<> poll(std::shared_ptr<registry> all);
  static bool poll_once(registry& all);
  static void erase_called(registry& all, std::map<std::uint64_t, entry>& erased) noexcept;

  void start_polling();
  CUstream_st* acquire_side_stream(device on);
  void queue_callback(const event& awaited, CUstream_st* side, std::uint64_t number);

  std::shared_ptr<registry> registry_;
  scope polling_;
};

}  // namespace lade::cuda
