#include <lade/thread_pool.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

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

// Empty if there is no such file.
static std::string cgroup_cpu_max() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  std::getline(file, line);
  return line;
}

unsigned available_cpus() {
  cpu_set_t set;
  auto count = sched_getaffinity(0, sizeof set, &set) == 0
                   ? static_cast<unsigned>(CPU_COUNT(&set))
                   : std::max(1u, std::thread::hardware_concurrency());
  auto quota = detail::cpus_granted(cgroup_cpu_max());
  return quota ? std::min(quota, count) : count;
}

struct thread_pool::state {
  std::mutex mutex;
  std::condition_variable work_arrived;
  std::deque<detail::job> queue;
  unsigned sleeping = 0;
  bool waking = false;  // a thread has been notified and has not come yet: it wakes the next
  bool ending = false;
  std::vector<std::thread> threads;

  // Has the threads run what is queued, then joins them.
  void end() {
    {
      std::lock_guard lock(mutex);
      ending = true;
    }
    work_arrived.notify_all();
    for (auto& thread : threads) thread.join();
  }

  // Whether to wake a thread for what is queued. Called with the mutex held.
  bool should_wake() {
    if (sleeping == 0 || waking || queue.empty()) return false;
    return waking = true;
  }

  void work(thread_pool& pool) {
    detail::this_executor = &pool;
    std::unique_lock lock(mutex);
    while (true) {
      while (queue.empty()) {
        if (ending) return;
        ++sleeping;
        work_arrived.wait(lock);
        --sleeping;
        waking = false;
      }
      auto job = queue.front();
      queue.pop_front();
      bool wake = should_wake();
      lock.unlock();
      if (wake) work_arrived.notify_one();
      job();
      lock.lock();
    }
  }
};

thread_pool::thread_pool(unsigned threads, const std::string& name)
    : state_(std::make_unique<state>()) {
  if (threads == 0) threads = available_cpus();
  try {
    state_->threads.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) {
      auto& thread = state_->threads.emplace_back(&state::work, state_.get(), std::ref(*this));
      pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
    }
  } catch (...) {  // the system has no more threads
    state_->end();
    throw;
  }
}

thread_pool::~thread_pool() { state_->end(); }

unsigned thread_pool::size() const noexcept {
  return static_cast<unsigned>(state_->threads.size());
}

void thread_pool::post(detail::job work) {
  // Wakes under the mutex: once it is released, the work may have ended the pool.
  std::lock_guard lock(state_->mutex);
  state_->queue.push_back(work);
  if (state_->should_wake()) state_->work_arrived.notify_one();
}

bool thread_pool::run_some() {
  std::unique_lock lock(state_->mutex);
  if (state_->queue.empty()) return false;
  auto job = state_->queue.front();
  state_->queue.pop_front();
  lock.unlock();
  job();
  return true;
}

}  // namespace lade
