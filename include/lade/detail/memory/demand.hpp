// demand: the item that a taker waits for. memory_claim: whether an allocation is for that item,
// and so may exceed the memory budget.

#pragma once

#include <lade/detail/observability/stage_counters.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace lade::detail {

// The demand of one taker: the item that it waits for. Takers are the consumer of the run and the
// stages with dedicated coroutines. Demands form a chain from the stages to the consumer. An item
// is urgent if its taker waits for it, and every taker behind waits for its next item:
//
//   stage 1 [ 7 8 ] <── waits for item 7 ── stage 2 [ ] <── waits for the next item ── consumer
//
// Here item 7 of stage 1 is urgent. Stages with several paths or inputs have several chains.
//
// An urgent item never waits for memory. So a run that is out of memory makes progress, one item at
// a time if need be. While the consumer waits:
// - A taker waits for the oldest unfinished item of the stage before it. A worker has that item, or
//   takes it before any younger one. The item is urgent, so it gets its memory and finishes.
// - If that stage has no item, its taker waits for the next one, and the stage before it is urgent.
// - A coroutine that holds no items, such as a source, is urgent while its taker waits for the next
//   item.
//
// Thread: one thread at a time sets a demand; any thread may read it.
class demand {
 public:
  // Instead of the number of an item: no item; the next item of the stage before.
  static constexpr std::size_t none = ~std::size_t{0};
  static constexpr std::size_t next = none - 1;

  // `behind`: the demand that this one serves; null for the demand of the consumer.
  explicit demand(std::shared_ptr<const demand> behind = nullptr) noexcept
      : behind_(std::move(behind)) {}

  // Called by the taker. If waiting allocations may have become urgent, the caller must call
  // buffer_pool::reconsider() afterwards.
  void await(std::size_t item) noexcept { awaited_.store(item, std::memory_order_relaxed); }

  // Whether the item is urgent. Any thread.
  bool is_for(std::size_t item) const noexcept {
    return awaited_.load(std::memory_order_relaxed) == item && (!behind_ || behind_->is_for(next));
  }

 private:
  std::atomic<std::size_t> awaited_ = none;
  const std::shared_ptr<const demand> behind_;
};

// The claim of some coroutines to the memory budget: the item that they allocate for. Owned by a
// worker of a stage, by its feeder or by the run, which sets the item and outlives the coroutines.
class memory_claim {
 public:
  explicit memory_claim(std::shared_ptr<const demand> of, std::size_t item = demand::next) noexcept
      : demand_(std::move(of)), item_(item) {}

  void set_item(std::size_t item) noexcept { item_.store(item, std::memory_order_relaxed); }

  bool is_urgent() const noexcept { return demand_->is_for(item_.load(std::memory_order_relaxed)); }

  // The time during which at least one of the coroutines waited for memory.
  shared_waiting_time waited;

 private:
  const std::shared_ptr<const demand> demand_;
  std::atomic<std::size_t> item_;
};

}  // namespace lade::detail
