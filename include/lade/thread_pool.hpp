// The threads that compute: decoding, parsing, user code.

#pragma once

#include <lade/detail/executor.hpp>
#include <lade/task.hpp>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace lade {

// The number of CPUs this process may use: its affinity mask, bounded by its cgroup's quota.
unsigned available_cpus();

namespace detail {

// The number of CPUs that the text of a cgroup's cpu.max grants; 0 if it sets no bound.
unsigned cpus_granted(const std::string& cpu_max);

}  // namespace detail

// Threads that run jobs in the order of their arrival. A post wakes at most one thread, and none
// when all are busy. The destructor runs what has been posted, then joins the threads.
class thread_pool final : public detail::executor {
 public:
  // `threads` of 0 means one per available CPU. `name` is what debuggers and `top -H` show (cut to
  // 15 bytes).
  explicit thread_pool(unsigned threads = 0, const std::string& name = "lade-cpu");
  ~thread_pool();

  unsigned size() const noexcept;

  void post(detail::job work) override;
  bool run_some() override;

  // Awaits function(arguments...) on a thread of the pool. Arguments are passed by value. Work is
  // a function and its arguments, not a capturing lambda, which GCC 12 destroys twice inside of
  // an awaiting expression.
  template <class F, class... Args>
  task<std::invoke_result_t<F, Args...>> run(F function, Args... arguments) {
    co_await detail::continue_on(*this);
    co_return std::invoke(std::move(function), std::move(arguments)...);
  }

 private:
  struct state;

  std::unique_ptr<state> state_;
};

}  // namespace lade
