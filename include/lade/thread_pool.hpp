// The threads that run computations, such as decoding, parsing and user functions.

#pragma once

#include <lade/continue_on.hpp>
#include <lade/detail/runtime/executor.hpp>
#include <lade/task.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

// The number of CPUs that this process may use: those of its affinity mask, limited by the quota of
// its cgroups (version 1 and 2). The quota is read at the first call.
unsigned available_cpus();

namespace detail {

// The number of CPUs that the text of a cgroup's cpu.max grants; 0 if it sets no limit.
unsigned cpus_granted(const std::string& cpu_max);

// The number of CPUs that the cgroups of this process grant: the smallest quota between its own
// cgroup and the root of the hierarchy; 0 if none sets a limit. `root`: the directory that contains
// proc and sys.
unsigned cpu_quota(const std::string& root = "");

// The CPUs of a list in the format of Linux: "0-3,8" is 0, 1, 2, 3 and 8. Throws
// error(invalid_argument) for other text.
std::vector<unsigned> cpus_in_list(std::string_view list);

}  // namespace detail

struct thread_pool_options {
  unsigned threads = 0;  // at most 65,536; 0: one for each CPU that they may run on

  std::string_view name = "lade-cpu";  // name in debuggers and `top -H`, cut to 15 bytes

  // Numbers of the CPUs that the threads may run on; empty: all that the process may use.
  std::span<const unsigned> cpus = {};

  // The same, as the number of a NUMA node: the CPUs of that node.
  std::optional<unsigned> numa_node = {};
};

// A pool of threads that run jobs in FIFO order. Exception: a stage that has computed for a while
// yields its thread if the next job belongs to a later stage. Later stages have priority because
// they free the capacity that earlier stages need.
//
// - Lifetime: runs whose stages use a pool must end before the pool. A pool must not be destroyed
//   on one of its own threads. If either rule is broken, the destructor ends the process.
// - Blocking: the destructor runs all posted jobs, then joins the threads.
// - Cost: a post wakes at most one thread, and none if all are busy.
class thread_pool final : public detail::executor {
 public:
  // Throws error(invalid_argument) for:
  //
  // - too many threads
  // - a number of a CPU or node above 1023
  // - a node that does not exist or has no CPUs
  // - both `cpus` and `numa_node`
  //
  // Throws the system's error for CPUs that the process may not use.
  explicit thread_pool(const thread_pool_options& options = {});
  ~thread_pool();

  unsigned size() const noexcept;
  const std::string& name() const noexcept;  // as cut to 15 bytes

  void post(detail::job work) noexcept override;
  bool run_some() noexcept override;
  bool has_nearer(unsigned distance) const noexcept override;
  bool has_idle_thread() const noexcept override;

  // Awaits function(arguments...) on a thread of the pool. Copies or moves the arguments. Pass a
  // function and its arguments rather than a capturing lambda: GCC 12 destroys a capturing lambda
  // inside an awaiting expression twice.
  template <class F, class... Args>
  task<std::invoke_result_t<F, Args...>> run(F function, Args... arguments) {
    co_await continue_on(*this);
    co_return std::invoke(std::move(function), std::move(arguments)...);
  }

 private:
  struct state;

  std::unique_ptr<state> state_;
};

}  // namespace lade
