// Functions of map that take several items at a time. For writers of batch_into, see
// waiting_samples in batch.hpp.

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

// The items in the slots of a stage.
template <class In, class Out>
struct slot_values {
  std::optional<In> in;
  std::optional<Out> out;  // stays empty when the item is dropped
};

// One call of a function that takes several items, as the stage sees it: by the numbers of slots.
class several_call {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  // A slot whose item the function has not seen; `none` if none waits, or none should be begun now.
  virtual std::size_t take() = 0;
  virtual random draw(std::size_t slot) const = 0;

  // Each ends the item: its result is in the slot, or there is none; it has failed.
  virtual void finish(std::size_t slot) noexcept = 0;
  virtual void fail(std::size_t slot, const std::exception_ptr& why) noexcept = 0;

 protected:
  ~several_call() = default;
};

}  // namespace detail

template <class In, class Out>
class waiting_items;

// An item that a function has taken from its waiting_items. It is ended by one call of give, drop
// or fail, on the thread of the function and before the function returns; a second one throws
// error(invalid_argument).
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

  // The item, which may be moved from. It is gone when it has been ended.
  In& operator*() const { return *open().slots_[slot_].in; }
  In* operator->() const { return std::addressof(**this); }

  // The random numbers of this item: those that the function would get for it alone.
  random draw() const { return open().call_.draw(slot_); }

  // The result, which goes on at once: others that were taken are not waited for.
  void give(Out result) {
    open().slots_[slot_].out.emplace(std::move(result));
    end().call_.finish(slot_);
  }

  // There is no result, and that is no failure.
  void drop() { end().call_.finish(slot_); }

  // As if the function had thrown `why` for this item alone: it is retried, skipped or ends the
  // run as the stage's options say.
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

// The items that wait for a function that takes several at a time: decoding two images in one loop,
// one request for many keys, one call of a model. Such a function has two forms:
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
// items that are tried again, where the stage works in place (see map_options), and for a writer
// that is one of several. Both must give the same. Nothing is waited for: items do not wait until
// there are several, and next() does not wait.
//
// Order, lineage, statistics, hooks, limits of time, failures and substitutes are those of single
// items. The time of an item is from its next() to its end, so it includes work on others.
//
// items_at_a_time is a constant from 1 to 1,024; 1 is the same as no second form. Items that have
// not been ended when the function returns fail, and so they do with what the function throws. No
// taken_item may be used after that.
template <class In, class Out>
class waiting_items {
 public:
  waiting_items(std::vector<detail::slot_values<In, Out>>& slots,
                detail::several_call& call) noexcept
      : slots_(slots), call_(call) {}
  waiting_items(const waiting_items&) = delete;

  // Another item: the first call in a function gives one, unless the item has failed before the
  // function could see it. Nothing if no other waits, if the function has items_at_a_time that it
  // has not ended, or if the thread should do something else now: the function then ends what it
  // has and returns. It may ask again before.
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

// Whether F has the form for several items beside that for one.
template <class F, class In, class Out>
concept takes_several = requires(F& function, waiting_items<In, Out>& waiting) {
  { F::items_at_a_time } -> std::convertible_to<unsigned>;
  function(waiting);
};

// Whether F says that it takes several.
template <class F>
concept says_several = requires { requires F::items_at_a_time != 1; };

constexpr unsigned most_at_a_time = 1024;

// How many items a call of F takes, at most.
template <class F, class In, class Out>
constexpr unsigned items_at_a_time() {
  if constexpr (says_several<F>) {
    static_assert(takes_several<F, In, Out>,
                  "lade::map: a function with items_at_a_time must also take "
                  "waiting_items<In, Out>&, of the stage's item and the item that its form for one "
                  "gives, and be callable as const");
    static_assert(1 <= F::items_at_a_time && F::items_at_a_time <= most_at_a_time,
                  "lade::map: items_at_a_time must be from 1 to 1,024");
    return F::items_at_a_time;
  } else {
    return 1;
  }
}

}  // namespace detail
}  // namespace lade
