// waiting_items: for functions of map that take several items at a time. For writers of batch_into,
// see waiting_samples in batch.hpp.

#pragma once

#include <lade/error.hpp>
#include <lade/random.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

// The input and the output of one slot of a stage.
template <class In, class Out>
struct slot_values {
  std::optional<In> in;
  std::optional<Out> out;  // empty if the item is dropped
};

// The stage's interface to one call of a function that takes several items. It identifies items by
// the numbers of their slots.
class several_call {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  // Takes a waiting item and returns its slot. Returns `none` if no item waits, or if the function
  // should start no further item now.
  virtual std::size_t take() = 0;
  virtual random draw(std::size_t slot) const = 0;

  // Each ends the item. finish(): the result is in the slot, or the item is dropped if the slot has
  // none. fail(): the item has failed.
  virtual void finish(std::size_t slot) noexcept = 0;
  virtual void fail(std::size_t slot, const std::exception_ptr& why) noexcept = 0;

 protected:
  ~several_call() = default;
};

}  // namespace detail

template <class In, class Out>
class waiting_items;

// An item that a function has taken from its waiting_items. The function ends the item by exactly
// one call of give, drop or fail: on its own thread and before it returns. After that, every use of
// the taken_item throws error(invalid_argument).
template <class In, class Out>
class taken_item {
 public:
  taken_item(taken_item&& other) noexcept
      : from_(std::exchange(other.from_, nullptr)), slot_(other.slot_) {}
  taken_item& operator=(taken_item&& other) noexcept {
    from_ = std::exchange(other.from_, nullptr);
    slot_ = other.slot_;
    return *this;
  }

  // The item, valid until it is ended. The function may move from it.
  In& operator*() const { return *open().slots_[slot_].in; }
  In* operator->() const { return std::addressof(**this); }

  // The random numbers of this item: the same as in a call for this item alone.
  random draw() const { return open().call_.draw(slot_); }

  // Ends the item with its result. The result is passed on at once, without waiting for other items
  // of the call.
  void give(Out result) {
    open().slots_[slot_].out.emplace(std::move(result));
    end().call_.finish(slot_);
  }

  // Ends the item without a result. That is not a failure.
  void drop() { end().call_.finish(slot_); }

  // Ends the item as failed, as if the function had thrown `why` in a call for this item alone. The
  // options of the stage decide: the item is retried, substituted or skipped, or ends the run.
  void fail(const std::exception_ptr& why) { end().call_.fail(slot_, why); }

 private:
  friend class waiting_items<In, Out>;

  taken_item(const waiting_items<In, Out>& from, std::size_t slot) noexcept
      : from_(&from), slot_(slot) {}

  const waiting_items<In, Out>& open() const {
    if (!from_) throw error(errc::invalid_argument, "use an item", "it has been ended");
    return *from_;
  }
  const waiting_items<In, Out>& end() {
    open();
    return *std::exchange(from_, nullptr);
  }

  const waiting_items<In, Out>* from_;
  std::size_t slot_;
};

// The items that wait for a function that takes several at a time: to decode two images in one
// loop, to send one request for many keys, to call a model once. Such a function has two forms:
//
//   struct answer {
//     std::string operator()(const std::string& question) const;  // one item, as for any map
//
//     static constexpr unsigned items_at_a_time = 8;
//     void operator()(lade::waiting_items<std::string, std::string>& waiting) const {
//       std::vector<lade::taken_item<std::string, std::string>> taken;
//       while (auto next = waiting.next()) taken.push_back(std::move(*next));
//       auto answers = ask_all(taken);
//       for (std::size_t i = 0; i < taken.size(); ++i) taken[i].give(std::move(answers[i]));
//     }
//   };
//
// A worker of the stage calls the second form when it has an item. The first form is called for
// items that are retried, and in a stage that runs inline (see map_options). It is also called for
// a writer that is one of several. Both forms must return the same results.
//
// Blocking: none. Items do not wait until there are several, and next() returns at once.
//
// Order, lineage, statistics, hooks, time limits, failures and substitutes apply to each item as to
// single items. The time of an item runs from its next() to its end, so it includes work on others.
//
// Errors: items that the function has not ended when it returns fail. If the function throws, they
// fail with its exception. No taken_item may be used after the function has returned.
//
// items_at_a_time is a constant from 1 to 1,024; 1 has the same effect as no second form.
template <class In, class Out>
class waiting_items {
 public:
  waiting_items(std::vector<detail::slot_values<In, Out>>& slots,
                detail::several_call& call) noexcept
      : slots_(slots), call_(call) {}
  waiting_items(const waiting_items&) = delete;

  // Takes another item. The first call in a function returns one, unless that item has failed
  // before the function could see it. Returns nothing:
  // - if no other item waits,
  // - if the function has items_at_a_time items that it has not ended,
  // - or if the thread should do other work now.
  //
  // The function then ends the items that it has taken and returns. Until it returns, it may call
  // next() again.
  std::optional<taken_item<In, Out>> next() {
    const auto slot = call_.take();
    if (slot == detail::several_call::none) return std::nullopt;
    return taken_item<In, Out>(*this, slot);
  }

 private:
  friend class taken_item<In, Out>;

  std::vector<detail::slot_values<In, Out>>& slots_;
  detail::several_call& call_;
};

namespace detail {

// Whether F has the form for several items of waiting_items<In, Out>.
template <class F, class In, class Out>
concept takes_several = requires(F& function, waiting_items<In, Out>& waiting) {
  { F::items_at_a_time } -> std::convertible_to<unsigned>;
  function(waiting);
};

// Whether F has a constant items_at_a_time other than 1.
template <class F>
concept says_several = requires { requires F::items_at_a_time != 1; };

constexpr unsigned most_at_a_time = 1024;

// The maximum number of items that a call of F takes.
template <class F, class In, class Out>
constexpr unsigned items_at_a_time() {
  if constexpr (says_several<F>) {
    static_assert(takes_several<F, In, Out>,
                  "lade::map: a function with items_at_a_time must also take "
                  "waiting_items<In, Out>&, of the stage's item and the result of its form for one "
                  "item, and be callable as const");
    static_assert(1 <= F::items_at_a_time && F::items_at_a_time <= most_at_a_time,
                  "lade::map: items_at_a_time must be from 1 to 1,024");
    return F::items_at_a_time;
  } else {
    return 1;
  }
}

}  // namespace detail
}  // namespace lade
