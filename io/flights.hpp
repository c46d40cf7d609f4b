// Work that several coroutines of a process want done, and one does for all.

#pragma once

#include "cache_block.hpp"

#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/sleep.hpp>
#include <lade/task.hpp>

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
  };

  // Leads a flight, and ends it when destroyed.
  class lead {
   public:
    lead(flights& of, Key key, std::shared_ptr<flight> led)
        : flights_(of), key_(std::move(key)), flight_(std::move(led)) {}
    lead(const lead&) = delete;
    ~lead() {
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
task<> end_of_flight(std::shared_ptr<Flight> other) {
  co_await other->ended;
}

// Awaits the end of a flight that another leads. Not for ever: that one may wait for memory which
// is held until the caller has read. Returns whether it has ended.
template <class Flight>
task<bool> ends_in_time(std::shared_ptr<Flight> other) {
  constexpr auto longest = std::chrono::seconds(20);
  try {
    co_await with_timeout(longest, end_of_flight(std::move(other)), "wait for another reader");
    co_return true;
  } catch (const error& failure) {
    if (failure.code() != errc::timed_out) throw;
  }
  co_return false;
}

}  // namespace lade::detail
