// Work that several coroutines of a process want done, and one does for all.

#pragma once

#include "cache_block.hpp"

#include <lade/context.hpp>
#include <lade/detail/memory/demand.hpp>
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

// Any thread.
template <class Key, class Hash>
class flights {
 public:
  // What became of it, for those who wait: it is where they can find it, it is not and they do it
  // themselves, or it has failed and another tries.
  enum class outcome : std::uint8_t { failed, kept, not_kept };

  class flight {
   public:
    event ended;
    outcome result = outcome::failed;  // before `ended` is set

    // Whether who leads it waits for memory now.
    bool waits_for_memory() const {
      std::lock_guard lock(mutex_);
      return claim_ && claim_->waited.is_waiting();
    }

   private:
    friend class flights;

    void set_claim(const memory_claim* of_leader) {
      std::lock_guard lock(mutex_);
      claim_ = of_leader;
    }

    mutable std::mutex mutex_;             // guards what follows
    const memory_claim* claim_ = nullptr;  // the leader's; null: it has none, or has ended
  };

  // Leads a flight, and ends it when destroyed: by a coroutine with this context.
  class lead {
   public:
    lead(flights& all, Key key, std::shared_ptr<flight> led, const context& current)
        : flights_(all), key_(std::move(key)), flight_(std::move(led)) {
      flight_->set_claim(current.claim);
    }
    lead(const lead&) = delete;
    ~lead() {
      flight_->set_claim(nullptr);
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

  // The flight of a key, and whether the caller is to lead it.
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

// Awaits the end of a flight that another leads. Returns whether it has ended; it is not waited for
// any longer where that could be for ever:
//
//   - Who leads it waits for memory, and the caller is the one that memory never keeps waiting: its
//     run waits for its item, or it works for no run. What holds the memory may be waiting for just
//     that item. To look now and then is enough: nothing moves meanwhile.
//   - It has not ended after 20 seconds: a store may hang, or wait for what the caller holds.
template <class Flight>
task<bool> ends_in_time(std::shared_ptr<Flight> other) {
  constexpr std::chrono::nanoseconds longest = std::chrono::seconds(20);
  constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(160);
  auto& current = co_await this_context_reference();
  auto start = clock::now();
  for (std::chrono::nanoseconds pause = std::chrono::milliseconds(10);
       clock::now() - start < longest; pause = std::min(2 * pause, longest_pause)) {
    bool has_ended = co_await ends_within(pause, other);
    if (has_ended) co_return true;
    bool never_waits = !current.claim || current.claim->is_urgent();
    if (never_waits && other->waits_for_memory()) co_return false;
  }
  co_return false;
}

}  // namespace lade::detail
