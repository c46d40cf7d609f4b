// hooks: functions of the program that a run calls around its stages and around their calls for
// items.

#pragma once

#include <lade/lineage.hpp>

#include <any>
#include <exception>
#include <memory>
#include <string_view>
#include <typeinfo>

namespace lade {

// A view of an item of any type, or of no item. Valid as long as the item.
class item_view {
 public:
  item_view() = default;
  template <class T>
  explicit item_view(const T& item) noexcept : item_(std::addressof(item)), type_(&typeid(T)) {}

  // The item; null if its type is not exactly T, or if there is no item.
  template <class T>
  const T* as() const noexcept {
    return type_ && *type_ == typeid(T) ? static_cast<const T*>(item_) : nullptr;
  }

  // The type of the item; null if there is no item.
  const std::type_info* type() const noexcept { return type_; }

 private:
  const void* item_ = nullptr;
  const std::type_info* type_ = nullptr;
};

// One call of a stage's function for one item. Valid until the hook returns.
struct item_call {
  std::string_view stage;
  std::string_view item;     // key of the item; empty if it has none
  const lineage& positions;  // source positions of the item, and of items dropped just before it
  unsigned attempt = 1;      // number of the call, from 1, in a stage that retries

  item_view argument;  // in enter_item: the item; the function has not yet moved from it
  item_view result;    // in leave_item: result of the function; none if it failed or returned
                       // no item, and none for flat_map

  std::any& local;  // data of this hook object, from enter_item to leave_item of the same call

  // The argument or the result, if its type is exactly T; otherwise null.
  template <class T>
  const T* item_as() const noexcept {
    return argument.as<T>();
  }
  template <class T>
  const T* result_as() const noexcept {
    return result.as<T>();
  }
};

// A base class for hooks. A run gets them in its options:
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
// Threads: the threads that work for the run. Several may call the same object at a time.
//
// Lifetime: the object must outlive the run.
//
// Several objects: `{.hooks = {&first, &second}}` nest. Stages and calls enter them in this order
// and leave them in reverse. If an object's enter function has returned, its leave function is
// called exactly once: also after a failure, after a stop, and if the run is destroyed early.
// Otherwise it is never called.
//
// Exceptions of enter_item and leave_item: they fail the item as if the stage's function had
// thrown. So the stage's retries, substitute, policy and budget apply. If enter_item throws,
// neither the function nor the later objects are called. Objects that are left afterwards get the
// exception as `failure`. Of several exceptions of one call, the first counts.
//
// Exceptions of enter_stage and leave_stage: they end the run and are rethrown to the consumer. An
// exception of leave_item has the same effect if flat_map abandons the item before its generator
// has ended.
class run_hooks {
 public:
  virtual ~run_hooks() = default;

  // Called around a stage: when its first item is asked for, and when it has ended, has failed, or
  // is no longer needed. `failure` is null unless the stage has failed or was stopped. Not called
  // for stages without statistics: take, skip, shuffle, shard, repeat and unbatch.
  virtual void enter_stage(std::string_view /*stage*/) {}
  virtual void leave_stage(std::string_view /*stage*/, const std::exception_ptr& /*failure*/) {}

  // Called around every call for an item in map, filter, flat_map, batch_into, pad, pack and stack,
  // but not in other stages of the core. `failure` is the exception that the function has thrown,
  // whether or not the item fails in the end. It is null if flat_map abandons an item before
  // its generator has ended. A thread that makes one call for several items enters each of them,
  // and leaves them in any order. In batch_into, argument and result are the `sample`; the result
  // lacks the fields that were moved into the batch.
  virtual void enter_item(const item_call& /*call*/) {}
  virtual void leave_item(const item_call& /*call*/, const std::exception_ptr& /*failure*/) {}
};

}  // namespace lade
