// held<T>: an item that a custom stage holds back, with its lineage.

#pragma once

#include <lade/detail/coroutines/promise.hpp>
#include <lade/lineage.hpp>

#include <coroutine>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

// `co_await consume(origin)` adds a lineage to the lineages that the awaiting coroutine has
// consumed.
class consume {
 public:
  explicit consume(const lineage& origin) noexcept : origin_(origin) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) const {
    if (auto* base = base_of(coroutine); base && base->consumed) base->consumed->merge(origin_);
    return false;
  }
  void await_resume() const noexcept {}

 private:
  const lineage& origin_;
};

}  // namespace detail

// An item and its lineage, for stages that hold items back and yield them in any order:
//
//   async_generator<int> swap_pairs(async_generator<int> in) {
//     while (auto first = co_await in.next().held()) {
//       auto second = co_await in.next().held();
//       if (second) co_yield std::move(*second);
//       co_yield std::move(*first);
//     }
//   }
//
// A stage must yield every lineage that it takes this way exactly once: with its item, with an item
// made from it, or with another item that has joined it. A held<T> cannot be copied, because its
// lineage would then be yielded twice.
template <class T>
class held {
 public:
  using value_type = T;

  held(T item, lineage origin) : item_(std::move(item)), origin_(std::move(origin)) {}
  held(held&&) = default;
  held& operator=(held&&) = default;

  T& operator*() noexcept { return item_; }
  const T& operator*() const noexcept { return item_; }
  T* operator->() noexcept { return &item_; }
  const T* operator->() const noexcept { return &item_; }
  const lineage& origin() const noexcept { return origin_; }

  // Returns another item, made from this one, and moves the lineage to it.
  template <class U>
  held<U> with(U item) && {
    return held<U>(std::move(item), std::move(origin_));
  }

  // Adds the lineage of `other`, which must not be yielded itself.
  template <class U>
  void join(const held<U>& other) {
    origin_.merge(other.origin());
  }

  // `co_await item.drop()` drops the item: its lineage is added to the next item that the awaiting
  // stage yields.
  [[nodiscard]] detail::consume drop() const noexcept { return detail::consume(origin_); }

 private:
  T item_;
  lineage origin_;
};

// One batch of all items, with the lineages of all of them.
template <class T>
held<std::vector<T>> collate(std::vector<held<T>> items) {
  std::vector<T> batch;
  batch.reserve(items.size());
  lineage origin;
  for (auto& each : items) {
    batch.push_back(std::move(*each));
    origin.merge(each.origin());
  }
  return held<std::vector<T>>(std::move(batch), std::move(origin));
}

}  // namespace lade
