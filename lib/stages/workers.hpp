// The items that a worker's function has been called for and has not ended.

#pragma once

#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/stages/concurrent_core.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lade::detail {

// Of one worker: one call after another, each for one item or for several. Items that have failed
// and may be tried again stay with the worker, which goes on with them before it takes others, the
// one first whose pause is over first. Only for the memory of the first in the order of the input
// does it wait: what holds the memory may be waiting for that one to be delivered.
class concurrent_core::items_in_flight final : private several_call {
 public:
  // `calls` is null if items are not to be called for.
  items_in_flight(concurrent_core& stage, slot_calls* calls, call_log& log, call_memory& memory,
                  const context& execution);

  // The items that the worker is to try again. Of them, the one that is due first; and, once it is
  // due, whether it may be called for: with memory that is free, which has been reserved then. If
  // not, the worker waits for the first one.
  bool has_attempts() const noexcept { return !attempts_.empty(); }
  std::size_t due_first() const noexcept;
  std::size_t first_attempt() const noexcept { return attempts_.front(); }
  bool may_try(std::size_t slot) noexcept;
  void begin_attempt(std::size_t slot) noexcept { std::erase(attempts_, slot); }

  // The call for one item, which the worker makes between begin_call and end_call: with what it has
  // thrown, or null. Gives what the worker has done, as finished().
  void begin_call(std::size_t slot);
  void prepare();  // with a copy for another attempt; throws what copying or a hook throws
  std::size_t end_call(const std::exception_ptr& thrown);

  // The call for the item in slot `first`, whose memory has been reserved, and for others that
  // wait. All of their slots have been finished when it returns, but those to be tried again.
  void call_for_several(std::size_t first);

  // What take_filled() gets for a slot: that slot, or, if it is not the last, `several`.
  std::size_t finished(std::size_t slot) noexcept;

 private:
  struct item {
    explicit item(stage_track on) noexcept : track(std::move(on)) {}

    std::size_t slot = none;
    bool kept = false;
    std::size_t needed = 0;  // memory that has been reserved for it
    std::optional<hooked_call> hooked;
    stage_track track;  // where its span goes in a trace: those of several overlap
  };

  std::size_t take() override;
  random draw(std::size_t slot) const override;
  void finish(std::size_t slot) noexcept override;
  void fail(std::size_t slot, const std::exception_ptr& why) noexcept override;

  bool may_take_more() const;
  std::size_t take_waiting();
  std::size_t number_of(std::size_t slot) const noexcept;
  void begin(std::size_t number, std::size_t slot, clock::time_point now);
  void prepare(std::size_t number);
  // Returns the failure of the call.
  std::exception_ptr end_hooks(item& of, const std::exception_ptr& thrown) const noexcept;
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
  const context& context_;
  std::vector<std::unique_ptr<item>> items_;
  std::vector<std::size_t> attempts_;  // that are to be made, in the order of the input
  std::uint64_t last_ = 0;             // number of the item that was begun last
  std::size_t first_ = none;           // until the function takes it
  bool takes_more_ = false;            // whether the function may have others beside it
  clock::time_point began_{};          // the call for several
};

}  // namespace lade::detail
