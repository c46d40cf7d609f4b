// The reactor for where io_uring is refused: what may block is done by helper threads, what can be
// polled waits in epoll, and what the page cache has is read at once.

#pragma once

#include <lade/detail/reactor.hpp>

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
    explicit helpers(fallback& owner) : owner_(owner) {}

    void join();  // when all calls have ended
    void add(io_operation& operation);
    bool withdraw(io_operation& operation);  // false when a thread is at it, or has done it

    static constexpr std::size_t max_threads = 32;

   private:
    void work();

    fallback& owner_;
    std::mutex mutex_;
    std::condition_variable added_;
    operation_queue queue_;  // guarded by mutex_, as all that follows
    std::size_t idle_ = 0;
    bool ending_ = false;
    std::vector<std::thread> threads_;
  };

  void turn(clock::time_point deadline) override;
  void cancel_begun(io_operation& operation) noexcept override;
  void wake() noexcept override;

  static int wait_milliseconds(clock::time_point deadline);
  void begin(io_operation& operation);
  void begin_read(io_operation& read);
  void read_stream(io_operation& read, bool ready);
  void opened(io_operation& open, int fd);
  void watch(io_operation& operation, int fd);
  void always_ready(io_operation& operation, std::uint32_t wanted);
  void unwatch(io_operation& operation) noexcept;
  void happened(io_operation& operation, std::uint32_t events);
  void returned(io_operation& operation, std::int64_t result) noexcept;

  std::string reason_;
  int epoll_;
  int wake_;
  helpers helpers_{*this};
};

}  // namespace lade::detail
