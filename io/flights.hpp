// Single-flight work: of several coroutines that need the same result, one produces it.

#pragma once

#include "cache_block.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/context.hpp>
#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace lade::detail {

// The flights of a cache, by key. The first coroutine that joins a key leads its flight; the others
// wait for `ended`. Any thread.
template <class Key, class Hash>
class flights {
 public:
  // The outcome for the waiters:
  //   kept      the result is in the cache
  //   not_kept  the result was not cached: each waiter does the work itself
  //   failed    the leader failed: one of the waiters tries again
  enum class outcome : std::uint8_t { failed, kept, not_kept };

  class flight {
   public:
    event ended;
    outcome result = outcome::failed;  // written before `ended` is set

    // Whether the leader waits for memory now.
    bool waits_for_memory() const {
      std::lock_guard lock(mutex_);
      return leader_ && lade::waits_for_memory(*leader_);
    }

   private:
    friend class flights;

    void set_leader(const context* leader) {
      std::lock_guard lock(mutex_);
      leader_ = leader;
    }

    mutable std::mutex mutex_;         // guards leader_
    const context* leader_ = nullptr;  // the leader's context; null once the flight has ended
  };

  // Held by the leader of a flight, a coroutine with the context `current`, which must outlive it.
  // The destructor ends the flight.
  class lead {
   public:
    lead(flights& all, Key key, std::shared_ptr<flight> led, const context& current)
        : flights_(all), key_(std::move(key)), flight_(std::move(led)) {
      flight_->set_leader(&current);
    }
    lead(const lead&) = delete;
    ~lead() {
      flight_->set_leader(nullptr);
      {
        std::lock_guard lock(flights_.mutex_);
        flights_.live_.erase(key_);
      }
      flight_->ended.set();
    }

    void set_result(outcome result) noexcept { flight_->result = result; }

   private:
    flights& flights_;
    Key key_;
    std::shared_ptr<flight> flight_;
  };

  // Returns the flight of a key, and whether the caller must lead it.
  std::pair<std::shared_ptr<flight>, bool> join(const Key& key) {
    std::lock_guard lock(mutex_);
    auto& found = live_[key];
    bool leads = !found;
    if (leads) found = std::make_shared<flight>();
    return {found, leads};
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<flight>, Hash> live_;  // guarded by mutex_
};

template <class Flight>
task<> flight_end(std::shared_ptr<Flight> other) {
  co_await other->ended;
}

template <class Flight>
task<bool> ends_within(std::chrono::nanoseconds limit, std::shared_ptr<Flight> other) {
  try {
    co_await with_timeout(limit, flight_end(std::move(other)), "wait for another reader");
    co_return true;
  } catch (const error& failure) {
    if (failure.code() != errc::timed_out) throw;
  }
  co_return false;
}

// Waits for the end of a flight that another coroutine leads. Returns whether it has ended.
//
// Returns false if waiting longer could deadlock:
//   - The leader waits for memory, and the caller never does: its run needs its item next, or it
//     belongs to no run. Items after the caller's may hold the memory. This state is polled.
//   - The flight has not ended after 20 seconds: its store may hang, or need something that the
//     caller holds.
template <class Flight>
task<bool> ends_in_time(std::shared_ptr<Flight> other) {
  constexpr std::chrono::nanoseconds longest = std::chrono::seconds(20);
  constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(160);
  auto& current = co_await this_context_reference();
  auto start = std::chrono::steady_clock::now();
  for (std::chrono::nanoseconds pause = std::chrono::milliseconds(10);
       std::chrono::steady_clock::now() - start < longest;
       pause = std::min(2 * pause, longest_pause)) {
    bool has_ended = co_await ends_within(pause, other);
    if (has_ended) co_return true;
    if (never_waits_for_memory(current) && other->waits_for_memory()) co_return false;
  }
  co_return false;
}

}  // namespace lade::detail
