// held<T>: an item that a stage keeps, with its lineage.

#pragma once

#include <lade/detail/coroutines/promise.hpp>
#include <lade/lineage.hpp>

#include <coroutine>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

// `co_await consume(origin)` counts a lineage to what the awaiting coroutine has consumed.
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

// An item and its lineage, for stages that hold items back, in any order:
//
//   async_generator<int> swap_pairs(async_generator<int> in) {
//     while (auto first = co_await in.next().held()) {
//       auto second = co_await in.next().held();
//       if (second) co_yield std::move(*second);
//       co_yield std::move(*first);
//     }
//   }
//
// Every lineage that a stage takes so must be yielded once: with its item, with an item made of it,
// or with another item that it has joined. Cannot be copied, since a copy would be yielded twice.
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

  // Another item that is made of this one: it has the lineage, and this one none.
  template <class U>
  held<U> with(U item) && {
    return held<U>(std::move(item), std::move(origin_));
  }

  // Adds the lineage of an item that is not yielded itself.
  template <class U>
  void join(const held<U>& other) {
    origin_.merge(other.origin());
  }

  // `co_await item.drop()`: the item is not yielded, and its lineage counts to what the awaiting
  // stage yields next.
  [[nodiscard]] detail::consume drop() const noexcept { return detail::consume(origin_); }

 private:
  T item_;
  lineage origin_;
};

// The items of a batch, with the lineages of all.
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
