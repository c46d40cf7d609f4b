#include <lade/detail/executor.hpp>
#include <lade/detail/long_chain.hpp>

#include <thread>

namespace lade::detail {

// The links that this thread has yet to delete; null unless it is deleting one.
static constinit thread_local const chain_link** links_to_delete = nullptr;

void chain_link::deleter::operator()(const chain_link* link) const noexcept {
  if (links_to_delete) {
    link->next_ = std::exchange(*links_to_delete, link);
    return;
  }
  links_to_delete = &link;
  while (link) {
    auto* first = std::exchange(link, link->next_);
    delete first;
  }
  links_to_delete = nullptr;
}

void call_on_new_stack(const std::function<void()>& function) {
  std::exception_ptr failure;
  auto call = [&, home = this_executor] {
    this_executor = home;
    try {
      function();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  std::thread(call).join();
  if (failure) std::rethrow_exception(failure);
}

bool new_stack::post(std::coroutine_handle<> coroutine, const context& where) {
  if (!where.home) return false;
  where.home->post(resumption(coroutine, where.distance));
  return true;
}

}  // namespace lade::detail
