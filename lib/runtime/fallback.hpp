// The reactor without io_uring. Reads of cached data happen inline, operations on pollable
// descriptors wait in epoll, and all other calls block a helper thread.

#pragma once

#include <lade/detail/runtime/reactor.hpp>

#include <condition_variable>
#include <string>

namespace lade::detail {

class fallback final : public reactor {
 public:
  // `reason`: why io_uring is not used; for describe().
  explicit fallback(std::string reason);
  ~fallback() override;

  std::string describe() const override;
  void close(int fd) noexcept override;

 private:
  // Threads that make blocking calls. One is started whenever a call finds none idle, up to
  // max_threads.
  class helpers {
   public:
    explicit helpers(fallback& owner) : owner_(owner) { threads_.reserve(max_threads); }

    void join();  // after all calls have ended
    void add(io_operation& operation) noexcept;
    bool withdraw(io_operation& operation);  // false if a thread has started it

    static constexpr std::size_t max_threads = 32;

   private:
    void work() noexcept;
    int start_thread() noexcept;  // returns 0, or the errno value of the failure

    fallback& owner_;
    std::mutex mutex_;
    std::condition_variable added_;
    operation_queue queue_;  // guarded by mutex_, as the members below
    std::size_t idle_ = 0;   // threads that wait and have not been notified
    bool ending_ = false;
    std::vector<std::thread> threads_;  // never reallocates: max_threads are reserved
  };

  void turn(clock::time_point deadline) noexcept override;
  void cancel_begun(io_operation& operation) noexcept override;
  void wake() noexcept override;

  void begin(io_operation& operation) noexcept;
  void begin_read(io_operation& read) noexcept;
  void read_stream(io_operation& read, bool ready) noexcept;
  void opened(io_operation& open, int fd) noexcept;
  void watch(io_operation& operation, int fd) noexcept;
  void always_ready(io_operation& operation, std::uint32_t events) noexcept;
  void unwatch(io_operation& operation) const noexcept;
  void happened(io_operation& operation, std::uint32_t events) noexcept;
  void returned(io_operation& operation, std::int64_t result) noexcept;

  std::string reason_;
  int epoll_;
  int wake_;
  helpers helpers_{*this};
};

}  // namespace lade::detail
