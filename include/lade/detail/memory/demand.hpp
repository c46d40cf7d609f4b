// Which item a run waits for: the one that gets its memory even beyond the limit.

#pragma once

#include <lade/stats.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace lade::detail {

// What one taker of items waits for: the run's consumer, or a stage of workers. The stage takes
// items for the taker behind it: its demand is a demand of the run only while that one waits too.
// So there is a chain of waits from the consumer to one item, or to one for each of the paths and
// inputs that work beside each other.
//
// Memory that is missing keeps no such item. Nothing locks up thereby: while the consumer waits,
//   - the last stage of workers that has an item in hand has one that is waited for: the first in
//     the order of its input, or the one begun first. That one is worked on and gets its memory, or
//     ends; or it waits for a worker, which is worked for by items that were begun before it.
//   - a stage that has nothing in hand takes an item from the stage before, where the same is so.
//   - whatever else makes items in the run waits for memory only while the consumer does not.
class demand {
 public:
  // Instead of the number of an item: the next one of the stage before; none.
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t next = none - 1;

  // `behind` is the demand that this one serves; null for the consumer's.
  explicit demand(std::shared_ptr<const demand> behind = nullptr) noexcept
      : behind_(std::move(behind)) {}

  // By the taker, one thread at a time. Whoever may be let through by it has to be told: see
  // buffer_pool::reconsider.
  void await(std::size_t item) noexcept { awaited_.store(item, std::memory_order_relaxed); }

  // Whether the run waits for that item. Any thread.
  bool is_for(std::size_t item) const noexcept {
    return awaited_.load(std::memory_order_relaxed) == item && (!behind_ || behind_->is_for(next));
  }

 private:
  std::atomic<std::size_t> awaited_ = none;
  const std::shared_ptr<const demand> behind_;
};

// For which item the coroutines of a context need memory. Belongs to the one that sets the item: a
// worker of a stage, its feeder, or the run. Those coroutines end before it.
class memory_claim {
 public:
  explicit memory_claim(std::shared_ptr<const demand> of, std::size_t item = demand::next) noexcept
      : demand_(std::move(of)), item_(item) {}

  void set_item(std::size_t item) noexcept { item_.store(item, std::memory_order_relaxed); }

  bool is_urgent() const noexcept { return demand_->is_for(item_.load(std::memory_order_relaxed)); }

  // Whether any of the coroutines wait for memory, and how long they have.
  shared_waiting_time waited;

 private:
  const std::shared_ptr<const demand> demand_;
  std::atomic<std::size_t> item_;
};

}  // namespace lade::detail
