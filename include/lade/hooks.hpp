// Hooks: a program's own functions, called around the stages of a run and around their calls for
// items.

#pragma once

#include <lade/lineage.hpp>

#include <any>
#include <exception>
#include <memory>
#include <string_view>
#include <typeinfo>

namespace lade {

// Refers to an item of any type, or to none. Valid as long as the item.
class item_view {
 public:
  item_view() = default;
  template <class T>
  explicit item_view(const T& item) noexcept : item_(std::addressof(item)), type_(&typeid(T)) {}

  // The item; null if it is not exactly a T, or if there is none.
  template <class T>
  const T* as() const noexcept {
    return type_ && *type_ == typeid(T) ? static_cast<const T*>(item_) : nullptr;
  }

  // Null if there is no item.
  const std::type_info* type() const noexcept { return type_; }

 private:
  const void* item_ = nullptr;
  const std::type_info* type_ = nullptr;
};

// One call of a stage's function for one item. Valid until the hook returns.
struct item_call {
  std::string_view stage;
  std::string_view item;     // the item's key; empty if it has none
  const lineage& positions;  // source positions of the item, and of items dropped just before it
  unsigned attempt = 1;      // the number of the call, where a stage retries

  item_view argument;  // in enter_item: the item; the function has not yet moved from it
  item_view result;    // in leave_item: what the function returned; none if it failed or returned
                       // no item, and none for flat_map

  std::any& local;  // this hook object's own, from enter_item to leave_item of the same call

  // The argument and the result, if they are exactly a T; null otherwise.
  template <class T>
  const T* item_as() const noexcept {
    return argument.as<T>();
  }
  template <class T>
  const T* result_as() const noexcept {
    return result.as<T>();
  }
};

// A base class for hooks, which are given to a run:
//
//   class timing : public lade::run_hooks {
//     void enter_item(const lade::item_call& call) override { call.local = clock::now(); }
//     void leave_item(const lade::item_call& call, const std::exception_ptr&) override {
//       record(call.stage, clock::now() - std::any_cast<clock::time_point>(call.local));
//     }
//   };
//   timing times;
//   auto batches = runtime.run(pipeline, {.hooks = &times});
//
// Threads: those that work for the run. Several call the same object at a time.
//
// Lifetime: the object must outlive the run.
//
// Several objects: `{.hooks = {&first, &second}}` nest. Stages and calls enter them in this order
// and leave them in reverse. An object is left exactly once if its function to enter has returned,
// also after a failure, after a stop and where a run is destroyed early; otherwise never.
//
// Exceptions: what enter_item or leave_item throws fails the item as if the stage's function had
// thrown it, so retries, the substitute, the policy and the budget of the stage apply. When
// enter_item throws, neither the function nor the objects behind that one are called. Objects that
// are left afterwards get the exception as `failure`. Of several exceptions of one call, the first
// counts. What enter_stage or leave_stage throws ends the run and is rethrown to the consumer; so
// is what leave_item throws for an item that is left because nobody asks for the rest of its parts.
class run_hooks {
 public:
  virtual ~run_hooks() = default;

  // Around a stage: when its first item is asked for, and when it has no more, has failed, or is
  // left because nobody asks any more. `failure` is null unless it has failed or was stopped. Not
  // around those that statistics leave out: take, skip, shuffle, shard, repeat and unbatch.
  virtual void enter_stage(std::string_view /*stage*/) {}
  virtual void leave_stage(std::string_view /*stage*/, const std::exception_ptr& /*failure*/) {}

  // Around every call for an item in map, filter, flat_map, batch_into, pad, pack and stack; other
  // stages of the core do not report theirs. `failure` is what the function has thrown, whatever
  // then becomes of the item; null also where flat_map leaves an item because nobody asks for the
  // rest of its parts. A thread that is in a call for several items has entered each of them, and
  // leaves them in any order. For batch_into, argument and result are the `sample`; the result
  // lacks what has become a part of the batch.
  virtual void enter_item(const item_call& /*call*/) {}
  virtual void leave_item(const item_call& /*call*/, const std::exception_ptr& /*failure*/) {}
};

}  // namespace lade
