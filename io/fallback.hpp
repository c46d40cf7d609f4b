// The reactor for where io_uring is refused: what may block is done by helper threads, what can be
// polled waits in epoll, and what the page cache has is read at once.

#pragma once

#include <lade/detail/runtime/reactor.hpp>

#include <condition_variable>
#include <string>

namespace lade::detail {

class fallback final : public reactor {
 public:
  // `reason` says why this is not io_uring.
  explicit fallback(std::string reason);
  ~fallback() override;

  std::string describe() const override;
  void close(int fd) noexcept override;

 private:
  // Threads that make blocking calls, made when there is more to do than threads that could.
  class helpers {
   public:
    explicit helpers(fallback& owner) : owner_(owner) { threads_.reserve(max_threads); }

    void join();  // when all calls have ended
    void add(io_operation& operation) noexcept;
    bool withdraw(io_operation& operation);  // false when a thread is at it, or has done it

    static constexpr std::size_t max_threads = 32;

   private:
    void work() noexcept;
    int start_thread() noexcept;  // an errno value if there is none to be had

    fallback& owner_;
    std::mutex mutex_;
    std::condition_variable added_;
    operation_queue queue_;  // guarded by mutex_, as all that follows
    std::size_t idle_ = 0;
    bool ending_ = false;
    std::vector<std::thread> threads_;  // has room for all
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
  void unwatch(io_operation& operation) noexcept;
  void happened(io_operation& operation, std::uint32_t events) noexcept;
  void returned(io_operation& operation, std::int64_t result) noexcept;

  std::string reason_;
  int epoll_;
  int wake_;
  helpers helpers_{*this};
};

}  // namespace lade::detail
