// Hooks: a program's own functions, called around the stages of a run and their calls for items.

#pragma once

#include <lade/lineage.hpp>

#include <exception>
#include <string_view>

namespace lade {

// One call of a stage's function for one item. Valid as long as the hook runs.
struct item_call {
  std::string_view stage;
  std::string_view item;     // its key, as far as it has one
  const lineage& positions;  // source positions of the item, and of items dropped just before it
  unsigned attempt = 1;      // the number of the call, where a stage retries
};

// To derive from, and to be given to a run:
//
//   class counting : public lade::run_hooks {
//     void leave_item(const lade::item_call&, const std::exception_ptr& failure) override {
//       if (failure) ++failures_;
//     }
//     std::atomic<int> failures_ = 0;
//   };
//   counting hooks;
//   auto batches = runtime.run(pipeline, {.hooks = &hooks});
//
// Hooks are called on the threads that work for the run, by several at a time, and must outlive it.
// What one throws ends the run and is rethrown to the consumer.
class run_hooks {
 public:
  virtual ~run_hooks() = default;

  // Around a stage: when its first item is asked for, and when it has no more, has failed, or is
  // left because nobody asks any more. `failure` is null unless it has failed or was stopped. Not
  // around those that statistics leave out: take, skip, shuffle, shard, repeat and unbatch.
  virtual void enter_stage(std::string_view /*stage*/) {}
  virtual void leave_stage(std::string_view /*stage*/, const std::exception_ptr& /*failure*/) {}

  // Around every call for an item in map, filter, flat_map, batch_into, pad and pack; other stages
  // do not tell of theirs. `failure` is what the function has thrown, whatever then becomes of the
  // item; null also where flat_map leaves an item because nobody asks for the rest of its parts. A
  // thread that is in a call for several items has entered each of them, and leaves them in any
  // order.
  virtual void enter_item(const item_call& /*call*/) {}
  virtual void leave_item(const item_call& /*call*/, const std::exception_ptr& /*failure*/) {}
};

}  // namespace lade
