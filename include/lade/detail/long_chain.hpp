// Pipelines of any length on stacks of any size. Stages that work in place open, call and destroy
// each other recursively; every so many of them the chain is broken, and goes on with an empty
// stack.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/promise.hpp>

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace lade::detail {

// How many stages may open, call and destroy each other recursively.
inline constexpr unsigned longest_chain = 256;

// The base of what owns others of its kind, which own others in turn.
class chain_link {
 public:
  chain_link() = default;
  chain_link(const chain_link&) = delete;
  chain_link& operator=(const chain_link&) = delete;
  virtual ~chain_link() = default;

  // Deletes one link after the other: one that is deleted inside of another's destructor waits
  // until that has returned.
  struct deleter {
    void operator()(const chain_link* link) const noexcept;
  };

 private:
  mutable const chain_link* next_ = nullptr;  // to be deleted
};

// Calls a function on a thread of its own, whose stack is empty, and waits for it. Throws what it
// throws.
void call_on_new_stack(const std::function<void()>& function);

// `co_await new_stack()` goes on in another job of the coroutine's executor, where it has one.
class new_stack {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) const {
    auto* base = base_of(coroutine);
    return base && base->context && post(coroutine, *base->context);
  }
  void await_resume() const noexcept {}

 private:
  static bool post(std::coroutine_handle<> coroutine, const context& where);
};

// The items of a part of a chain.
template <class T>
class chain_part final : public chain_link {
 public:
  explicit chain_part(async_generator<T> opened) noexcept : items(std::move(opened)) {}
  async_generator<T> items;
};

// Passes items on between two parts of a chain.
template <class T>
async_generator<T> pass_on(std::unique_ptr<chain_part<T>, chain_link::deleter> part) {
  while (true) {
    T* item = nullptr;
    std::exception_ptr failure;
    co_await new_stack();
    try {
      item = co_await part->items.next();
    } catch (...) {
      failure = std::current_exception();
    }
    co_await new_stack();
    if (failure) std::rethrow_exception(failure);
    if (!item) co_return;
    co_yield *item;
  }
}

// Breaks a chain before the stages that `open()` opens.
template <class T, class Open>
async_generator<T> break_chain(const Open& open) {
  std::unique_ptr<chain_part<T>, chain_link::deleter> part;
  call_on_new_stack([&] { part.reset(new chain_part<T>(open())); });
  return pass_on(std::move(part));
}

}  // namespace lade::detail
