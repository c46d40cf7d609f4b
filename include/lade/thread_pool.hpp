// The threads that compute: decoding, parsing, user code.

#pragma once

#include <lade/detail/runtime/continue_on.hpp>
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

// The number of CPUs this process may use: its affinity mask, bounded by the quota of its cgroups
// (version 1 and 2) when this was first called.
unsigned available_cpus();

namespace detail {

// The number of CPUs that the text of a cgroup's cpu.max grants; 0 if it sets no bound.
unsigned cpus_granted(const std::string& cpu_max);

// The CPUs that the cgroups of this process grant: the smallest quota from its own cgroup up to the
// root of the hierarchy; 0 if none sets a bound. `root` is where proc and sys are mounted.
unsigned cpu_quota(const std::string& root = "");

// The CPUs in a list as Linux writes it: "0-3,8" for 0, 1, 2, 3 and 8. Throws
// error(invalid_argument) for other text.
std::vector<unsigned> cpus_in_list(std::string_view list);

}  // namespace detail

struct thread_pool_options {
  unsigned threads = 0;  // up to 65,536; 0: one for each CPU that they may run on

  std::string_view name = "lade-cpu";  // what debuggers and `top -H` show, cut to 15 bytes

  // The CPUs that the threads may run on, by their numbers; all that the process may use if empty.
  std::span<const unsigned> cpus = {};

  // The same, given as the CPUs next to one part of the memory.
  std::optional<unsigned> numa_node = {};
};

// Threads that run jobs in the order of their arrival. A stage that has computed for a while lets
// the next job go first if that is nearer to the end of its pipeline: what is finished makes room,
// what is begun needs it.
//
// A post wakes at most one thread, and none when all are busy. The destructor runs what has been
// posted, then joins the threads. Runs whose stages use a pool must end before it, and it must not
// be destroyed on one of its threads: else its destructor ends the process.
class thread_pool final : public detail::executor {
 public:
  // Throws error(invalid_argument) for too many threads, for the number of a CPU or of a node above
  // 1023, for a node that the machine does not have or that has no CPUs, or for both cpus and
  // numa_node, and the system's reason for CPUs that the process may not use.
  explicit thread_pool(const thread_pool_options& options = {});
  ~thread_pool();

  unsigned size() const noexcept;

  void post(detail::job work) noexcept override;
  bool run_some() noexcept override;
  bool has_nearer(unsigned distance) const noexcept override;

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
