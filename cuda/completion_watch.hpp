// How coroutines learn that the GPU has passed an event.

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
// For each, a side stream waits for the event and then calls back: on the event's own stream a
// callback would hold up the work behind it, and on one side stream for several events, one would
// hold up the others. The callback may not call CUDA, so it only sets a promise. Side streams are
// used again when their callback has come.
//
// After a failure of the device no callback comes. So as long as events are awaited, a coroutine
// asks them every 10 to 100 ms. It delivers what has been passed or has failed.
//
// An entry goes from `waiting` to `answered` (its promise is set: by the callback or by asking) and
// is erased once its callback has come or the device has failed. Only threads of the runtime erase
// entries, since that may destroy an event. A callback finds its entry by number; it may come when
// the runtime has ended, and then finds none.
class completion_watch {
 public:
  explicit completion_watch(runtime& runtime);
  completion_watch(const completion_watch&) = delete;
  ~completion_watch();

  struct watched {
    future<> happened;
    std::uint64_t number;
  };

  // `happened` is set when the event has been passed, or when asking for it fails. Throws error.
  watched watch(const event& awaited);

  // Nobody awaits it any more.
  void forget(std::uint64_t number);

 private:
  struct entry {
    entry(event passed, CUstream_st* on) : awaited(std::move(passed)), side(on) {}

    event awaited;
    CUstream_st* side;
    promise<> happened;
    bool answered = false;
    bool called = false;  // its side stream is free
  };

  // Shared with callbacks, which may outlive the runtime.
  struct registry {
    std::mutex mutex;  // guards all that follows
    std::map<std::uint64_t, entry> entries;
    std::uint64_t next = 0;
    bool polling = false;                           // a coroutine asks
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
