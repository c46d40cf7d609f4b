#include <lade/detail/runtime/start_thread.hpp>

#include <lade/detail/common/fatal.hpp>
#include <lade/detail/common/futex.hpp>
#include <lade/detail/runtime/activity.hpp>
#include <lade/detail/runtime/job_queue.hpp>
#include <lade/error.hpp>
#include <lade/support/require.hpp>
#include <lade/thread_pool.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

namespace lade {

unsigned detail::cpus_granted(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  double quota = 0;
  double period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return 0;  // "max 100000" ends here
  return std::max(1u, static_cast<unsigned>(quota / period + 0.5));
}

// The first line of a file; empty if it cannot be read.
static std::string cgroup_figure(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The quota of one cgroup, of version 1 or 2, in CPUs; 0 if it has none.
static unsigned cgroup_quota(const std::string& directory) {
  auto cpu_max = cgroup_figure(directory + "/cpu.max");
  if (cpu_max.empty())
    cpu_max = cgroup_figure(directory + "/cpu.cfs_quota_us") + ' ' +
              cgroup_figure(directory + "/cpu.cfs_period_us");
  return detail::cpus_granted(cpu_max);
}

static unsigned smaller_quota(unsigned a, unsigned b) { return a && b ? std::min(a, b) : a + b; }

// The smallest quota of `group` and the groups above it; 0 if there is none. In a container that
// sees only its own cgroup, as the root of the hierarchy, `group` does not exist.
static unsigned smallest_quota(const std::string& hierarchy, std::string group) {
  auto smallest = cgroup_quota(hierarchy);
  while (!group.empty()) {
    smallest = smaller_quota(smallest, cgroup_quota(hierarchy + group));
    group.resize(std::min(group.rfind('/'), group.size() - 1));
  }
  return smallest;
}

// Parses lines "number:controllers:group" of /proc/self/cgroup. Version 2 has no controllers.
// Version 1 mounts each hierarchy in a directory named after its controllers.
unsigned detail::cpu_quota(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  auto mounts = root + "/sys/fs/cgroup";
  unsigned smallest = 0;
  for (std::string line; std::getline(groups, line);) {
    std::istringstream parts(line);
    std::string number, controllers, group;
    std::getline(std::getline(std::getline(parts, number, ':'), controllers, ':'), group);
    if (controllers.empty())
      smallest = smaller_quota(smallest, smallest_quota(mounts, group));
    else if ((',' + controllers + ',').find(",cpu,") != std::string::npos)
      for (const auto& name : {controllers, std::string("cpu")})
        smallest =
            smaller_quota(smallest, smallest_quota(fmt::format("{}/{}", mounts, name), group));
  }
  return smallest;
}

unsigned available_cpus() {
  cpu_set_t set;
  auto count = sched_getaffinity(0, sizeof set, &set) == 0
                   ? static_cast<unsigned>(CPU_COUNT(&set))
                   : std::max(1u, std::thread::hardware_concurrency());
  static const unsigned quota = detail::cpu_quota();
  return quota ? std::min(quota, count) : count;
}

// A queue of jobs and the threads that run them. The mutex guards all members.
//
// A thread sleeps while the queue is empty. It reads `wakes` under the mutex and sleeps while the
// value is unchanged; a waker increments it under the mutex. So no wake-up is lost.
//
// At most one thread is being woken at a time, unless the wake-up may wait. A thread that takes a
// job wakes the next one if there are more jobs. So the poster of many jobs makes one system call.
struct thread_pool::state {
  std::mutex mutex;
  detail::futex_word wakes = 0;  // number of wake-ups
  detail::job_queue queue;
  unsigned sleeping = 0;
  bool waking = false;  // a thread has been woken and does not run yet
  bool ending = false;
  std::vector<std::thread> threads;
  std::string name;

  // Lets the threads run all queued jobs, then joins them.
  void end() {
    {
      std::lock_guard lock(mutex);
      ending = true;
      ++wakes;
    }
    detail::futex_wake_all(&wakes);
    for (auto& thread : threads) thread.join();
  }

  void work(thread_pool& pool) {
    detail::this_executor = &pool;
    std::unique_lock lock(mutex);
    while (true) {
      while (queue.empty()) {
        if (ending) return;
        sleep(lock);
      }
      auto job = queue.pop();
      bool wake = should_wake();
      lock.unlock();
      if (wake) detail::futex_wake_one(&wakes);
      job();
      lock.lock();
    }
  }

  // The functions below are called with the mutex held.
  void sleep(std::unique_lock<std::mutex>& lock) {
    ++sleeping;
    auto seen = wakes.load();
    lock.unlock();
    while (wakes.load() == seen) detail::futex_wait(wakes, seen);
    lock.lock();
    --sleeping;
    waking = false;
  }

  // Returns whether the caller must wake a thread after it has released the mutex.
  bool should_wake() {
    if (sleeping == 0 || waking || queue.empty()) return false;
    ++wakes;
    return waking = true;
  }

  // The same for a wake-up that may wait: others may wake a thread before that.
  bool should_wake_later() {
    if (sleeping == 0 || waking) return false;
    ++wakes;
    return true;
  }
};

std::vector<unsigned> detail::cpus_in_list(std::string_view list) {
  constexpr unsigned most = CPU_SETSIZE;
  std::vector<unsigned> cpus;
  auto* at = list.data();
  auto* end = at + list.size();
  auto number = [&] {
    unsigned value = 0;
    auto [next, failure] = std::from_chars(at, end, value);
    if (failure != std::errc() || value >= most)
      throw error(errc::invalid_argument, "read a list of CPUs", std::string(list));
    at = next;
    return value;
  };
  while (at != end && *at != '\n') {
    auto first = number();
    auto last = at != end && *at == '-' ? (++at, number()) : first;
    for (auto cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at != end && *at == ',') ++at;
  }
  return cpus;
}

static std::vector<unsigned> cpus_of_node(unsigned node) {
  std::ifstream file(fmt::format("/sys/devices/system/node/node{}/cpulist", node));
  std::string list;
  if (!std::getline(file, list))
    throw error(errc::invalid_argument, "make a thread pool",
                fmt::format("the machine has no NUMA node {}", node));
  auto cpus = detail::cpus_in_list(list);
  if (cpus.empty())  // a node of memory only
    throw error(errc::invalid_argument, "make a thread pool",
                fmt::format("NUMA node {} has no CPUs", node));
  return cpus;
}

// Empty if the threads may run on all CPUs of the process.
static std::vector<unsigned> cpus_of(const thread_pool_options& options) {
  if (!options.numa_node) return {options.cpus.begin(), options.cpus.end()};
  if (!options.cpus.empty())
    throw error(errc::invalid_argument, "make a thread pool", "both cpus and numa_node are set");
  return cpus_of_node(*options.numa_node);
}

static void pin(std::thread& thread, const std::vector<unsigned>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (auto cpu : cpus) CPU_SET(cpu, &set);
  auto failure = pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
  if (failure) raise(failure, "keep the threads of a pool on the CPUs of its options");
}

static void require_pool(const thread_pool_options& options) {
  constexpr auto doing = "make a thread pool";
  support::require_count(doing, "threads", options.threads, {.most = support::most_threads});
  for (auto cpu : options.cpus)
    support::require_count(doing, "a number in cpus", cpu, {.most = CPU_SETSIZE - 1});
  constexpr unsigned most_nodes = 1024;  // the limit of Linux
  if (options.numa_node)
    support::require_count(doing, "numa_node", *options.numa_node, {.most = most_nodes - 1});
}

thread_pool::thread_pool(const thread_pool_options& options) : state_(std::make_unique<state>()) {
  require_pool(options);
  auto cpus = cpus_of(options);
  auto threads = options.threads ? options.threads : static_cast<unsigned>(cpus.size());
  if (threads == 0) threads = available_cpus();
  state_->name = options.name.substr(0, 15);
  try {
    state_->threads.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) {
      auto& thread = state_->threads.emplace_back(
          detail::start_thread("a CPU pool", &state::work, state_.get(), std::ref(*this)));
      pthread_setname_np(thread.native_handle(), state_->name.c_str());
      if (!cpus.empty()) pin(thread, cpus);
    }
  } catch (...) {  // the system has no more threads
    state_->end();
    throw;
  }
}

thread_pool::~thread_pool() {
  if (in_use()) detail::fatal("a thread pool was destroyed before a run that uses it had ended");
  if (is_current()) detail::fatal("a thread pool was destroyed on one of its own threads");
  state_->end();
}

unsigned thread_pool::size() const noexcept {
  return static_cast<unsigned>(state_->threads.size());
}

const std::string& thread_pool::name() const noexcept { return state_->name; }

void thread_pool::post(detail::job work) noexcept {
  auto* wakes = &state_->wakes;
  const bool later = work.may_wait && detail::this_activity;
  bool wake = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->queue.make_room(lock);
    state_->queue.push(work);
    wake = later ? state_->should_wake_later() : state_->should_wake();
  }
  if (!wake) return;  // the job may have destroyed the pool already: no member may be accessed
  if (later)
    detail::this_activity->wake_later(wakes);
  else
    detail::futex_wake_one(wakes);
}

bool thread_pool::run_some() noexcept {
  std::unique_lock lock(state_->mutex);
  if (state_->queue.empty()) return false;
  auto job = state_->queue.pop();
  lock.unlock();
  job();
  return true;
}

bool thread_pool::has_nearer(unsigned distance) const noexcept {
  std::lock_guard lock(state_->mutex);
  return !state_->queue.empty() && state_->queue.front().distance < distance;
}

bool thread_pool::has_idle_thread() const noexcept {
  std::lock_guard lock(state_->mutex);
  return state_->sleeping > 0 && state_->queue.empty();
}

}  // namespace lade
