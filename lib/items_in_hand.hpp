// The items that a worker's function has been called for and has not ended.

#pragma once

#include <lade/detail/concurrent_core.hpp>
#include <lade/detail/items.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lade::detail {

// Of one worker: one call after another, each for one item or for several. Items that have failed
// and may be tried again stay with the worker, which goes on with them in the order of the input
// before it takes others: so a worker never waits for the memory of an item while an earlier one
// has nobody.
class concurrent_core::items_in_hand final : private several_call {
 public:
  // `calls` is null if items are not to be called for.
  items_in_hand(concurrent_core& stage, slot_calls* calls, call_log& log, call_memory& memory,
                const context& surroundings);

  // The item that the worker is to try again next: its slot, or `none`.
  std::size_t next_attempt() noexcept;

  // The call for one item, which the worker makes between begin_call and end_call: with what it has
  // thrown, or null. Gives what the worker has done, as finished().
  void begin_call(std::size_t slot);
  void keep_copy();  // for another attempt; throws what copying the item throws
  std::size_t end_call(const std::exception_ptr& thrown);

  // The call for the item in slot `first`, whose memory has been reserved, and for others that
  // wait. All of their slots have been finished when it returns, but those of next_attempt().
  void call_for_several(std::size_t first);

  // What take_filled() gets for a slot: that slot, or, if it is not the last, `several`.
  std::size_t finished(std::size_t slot) noexcept;

 private:
  struct item {
    explicit item(stage_track on) noexcept : track(std::move(on)) {}

    std::size_t slot = none;
    std::uint64_t order = 0;  // in which the items were taken; 0: tried again, which is the first
    bool kept = false;
    std::size_t needed = 0;  // memory that has been reserved for it
    std::optional<hooked_call> visit;
    stage_track track;  // where its span goes in a trace: those of several overlap
  };
  struct attempt {
    std::uint64_t order;
    std::size_t slot;
  };

  std::size_t take() override;
  random draw(std::size_t slot) const override;
  void finish(std::size_t slot) noexcept override;
  void fail(std::size_t slot, const std::exception_ptr& why) noexcept override;

  bool may_take_more() const;
  std::size_t take_waiting();
  std::size_t number_of(std::size_t slot) const noexcept;
  void begin(std::size_t number, std::size_t slot, clock::time_point now);
  void keep_copy(std::size_t number);
  bool end(std::size_t number, const std::exception_ptr& thrown, clock::time_point now);
  void end_early(std::size_t slot, const std::exception_ptr& thrown) noexcept;
  void end_memory() noexcept;
  std::exception_ptr not_ended() const;
  std::exception_ptr no_reason() const;
  void try_again(std::size_t number, clock::duration pause);

  concurrent_core& stage_;
  slot_calls* calls_;
  call_log& log_;
  call_memory& memory_;
  const context& surroundings_;
  std::vector<std::unique_ptr<item>> items_;
  std::vector<attempt> attempts_;  // that are to be made, the last one first
  std::uint64_t taken_ = 0;        // items so far
  std::size_t first_ = none;       // until the function takes it
  bool takes_more_ = false;        // whether the function may have others beside it
  clock::time_point began_{};      // the call for several
};

}  // namespace lade::detail
