// What threads, locks and queues need for what lade's coroutines do, to be compared with in the
// same run: figures between threads do not repeat from one run to the next.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>

#include "bench.hpp"

namespace {

// The queue that every textbook has.
template <class T>
class bounded_queue {
 public:
  explicit bounded_queue(std::size_t capacity) : capacity_(capacity) {}

  void push(T value) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return queue_.size() < capacity_; });
    queue_.push(std::move(value));
    lock.unlock();
    not_empty_.notify_one();
  }
  T pop() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return !queue_.empty(); });
    T value = std::move(queue_.front());
    queue_.pop();
    lock.unlock();
    not_full_.notify_one();
    return value;
  }

 private:
  std::size_t capacity_;
  std::queue<T> queue_;
  std::mutex mutex_;
  std::condition_variable not_full_, not_empty_;
};

// One item at a time from thread to thread, through 64 places.
void queue_of_64(std::size_t items) {
  bounded_queue<std::size_t> queue(64);
  bench::stopwatch clock;
  std::jthread producer([&] {
    for (std::size_t i = 0; i < items; ++i) queue.push(i);
  });
  std::size_t sum = 0;
  for (std::size_t i = 0; i < items; ++i) sum += queue.pop();
  if (sum != items * (items - 1) / 2) bench::fail("the queue lost an item");
  bench::print_each("queue_of_64", clock, items);
}

// The same with 32 items in each place.
void queue_of_64_in_batches(std::size_t items) {
  constexpr std::size_t batch = 32;
  bounded_queue<std::vector<std::size_t>> queue(64);
  items = items / batch * batch;
  bench::stopwatch clock;
  std::jthread producer([&] {
    for (std::size_t i = 0; i < items; i += batch) {
      std::vector<std::size_t> values;
      values.reserve(batch);
      for (std::size_t k = 0; k < batch; ++k) values.push_back(i + k);
      queue.push(std::move(values));
    }
  });
  std::size_t sum = 0;
  for (std::size_t i = 0; i < items; i += batch)
    for (std::size_t value : queue.pop()) sum += value;
  if (sum != items * (items - 1) / 2) bench::fail("the queue lost an item");
  bench::print_each("queue_of_64_in_batches_of_32", clock, items);
}

// Two threads that take turns: each item is one wake of a sleeping thread.
void hand_off(std::size_t items) {
  std::mutex mutex;
  std::condition_variable turned;
  std::size_t turn = 0;
  auto take_turns = [&](std::size_t parity) {
    std::unique_lock lock(mutex);
    while (true) {
      turned.wait(lock, [&] { return turn % 2 == parity || turn >= items; });
      if (turn >= items) return;
      ++turn;
      turned.notify_one();
    }
  };
  bench::stopwatch clock;
  std::jthread other(take_turns, 1);
  take_turns(0);
  other.join();
  bench::print_each("hand_off", clock, items);
}

// A job for each item to two sleeping threads through a queue: what a pool does at its plainest.
void pool_of_two(std::size_t items) {
  bounded_queue<int> queue(items);
  std::atomic<std::size_t> done = 0;
  bench::stopwatch clock;
  auto work = [&] {
    while (queue.pop() != 0) ++done;
  };
  std::jthread first(work), second(work);
  for (std::size_t i = 0; i < items; ++i) queue.push(1);
  for (int i = 0; i < 2; ++i) queue.push(0);
  first.join();
  second.join();
  if (done != items) bench::fail("the pool lost a job");
  bench::print_each("pool_of_two", clock, items);
}

// An allocation of the size of a small coroutine's frame, and its end.
void allocate(std::size_t items) {
  bench::stopwatch clock;
  for (std::size_t i = 0; i < items; ++i) {
    auto* frame = ::operator new(136);
    asm volatile("" : "+r"(frame)::"memory");
    ::operator delete(frame);
  }
  bench::print_each("allocation", clock, items);
}

// A mutex that nobody else wants.
void lock(std::size_t items) {
  std::mutex mutex;
  bench::stopwatch clock;
  for (std::size_t i = 0; i < items; ++i) std::lock_guard held(mutex);
  bench::print_each("mutex", clock, items);
}

// The time.
void read_clock(std::size_t items) {
  bench::stopwatch clock;
  for (std::size_t i = 0; i < items; ++i) {
    auto now = std::chrono::steady_clock::now();
    asm volatile("" : : "r"(&now) : "memory");
  }
  bench::print_each("clock", clock, items);
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Threads and queues: what coroutines compete with.");
  auto items = options.number("items", 1'000'000, "items and jobs");
  auto only = options.choice("only", "all|queue|batches|hand_off|pool|allocation|mutex|clock",
                             "what to run");
  options.done();
  auto wanted = [&only](const char* name) { return only == "all" || only == name; };
  if (wanted("queue")) queue_of_64(items);
  if (wanted("batches")) queue_of_64_in_batches(items);
  if (wanted("hand_off")) hand_off(items / 10);
  if (wanted("pool")) pool_of_two(items);
  if (wanted("allocation")) allocate(items);
  if (wanted("mutex")) lock(items);
  if (wanted("clock")) read_clock(items);
}
