#include <lade/detail/runtime/start_thread.hpp>

#include <lade/detail/common/counted.hpp>
#include <lade/detail/coroutines/long_chain.hpp>
#include <lade/detail/coroutines/promise.hpp>
#include <lade/detail/runtime/executor.hpp>

#include <coroutine>
#include <exception>
#include <thread>
#include <utility>

namespace lade::detail {

// Calls a function on a new thread, whose stack is empty, and waits for it. The thread counts as
// one of the caller's executor. Rethrows the exception of the function.
static void call_on_new_stack(const std::function<void()>& function) {
  std::exception_ptr failure;
  auto call = [&, home = this_executor] {
    this_executor = home;
    try {
      function();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  start_thread("a long chain of stages", call).join();
  if (failure) std::rethrow_exception(failure);
}

// `co_await new_stack()` continues the coroutine in another job of its executor, if it has one.
class new_stack {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) const {
    auto* where = coroutine.promise().context;
    if (!where || !where->home) return false;
    where->home->post(resumption(coroutine, where->distance));
    return true;
  }
  void await_resume() const noexcept {}
};

// The generator of one part of a chain. Its base `counted` defers the deletion while another part
// is being deleted, so deletion does not recurse over parts.
class chain_part final : public counted {
 public:
  explicit chain_part(generator opened) noexcept : items(std::move(opened)) {}
  generator items;
};

// Forwards items from one part of a chain to the next.
static generator pass_on(counted_ptr<chain_part> part) {
  while (true) {
    void* item = nullptr;
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
    co_yield item;
  }
}

generator break_chain(const std::function<generator()>& open) {
  counted_ptr<chain_part> part;
  call_on_new_stack([&] { part = counted_ptr(new chain_part(open())); });
  return pass_on(std::move(part));
}

}  // namespace lade::detail
