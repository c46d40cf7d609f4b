// The reactor on io_uring: one ring, one system call for each turn of the loop.

#pragma once

#include <lade/detail/runtime/reactor.hpp>

#include <string>
#include <vector>

#include <liburing.h>

namespace lade::detail {

class uring final : public reactor {
 public:
  // Throws error with the kernel's reason when io_uring is refused. The ring is usable from the
  // reactor's thread only, and only after enter_thread.
  uring();
  ~uring() override;

  std::string describe() const override;
  void close(int fd) noexcept override;

 private:
  void turn(clock::time_point deadline) noexcept override;
  void cancel_begun(io_operation& operation) noexcept override;
  void wake() noexcept override;
  void enter_thread() override;

  void set_up();
  void require_all_calls();

  void fill() noexcept;
  bool fill_next() noexcept;
  void add_wake() noexcept;
  void add_close(int fd) noexcept;
  void add_cancel(io_operation& operation) noexcept;
  void add(io_operation& operation) noexcept;
  bool waiting_for_space() const noexcept;

  int submit_and_wait(clock::time_point deadline) noexcept;
  void collect() noexcept;
  void collect(const io_uring_cqe& completion) noexcept;

  void refuse(int failure) noexcept;
  void take_back(const io_uring_sqe& entry) noexcept;
  void refuse_waiting() noexcept;
  void wait_without_ring(clock::time_point deadline) noexcept;

  io_uring uring_{};
  const char* mode_ = nullptr;  // the optional features that the kernel has
  int wake_ = -1;
  bool wake_polled_ = false;
  operation_queue cancelled_;  // begun, and to be cancelled
  std::vector<int> closing_;
  int refused_ = 0;            // why the kernel takes no more entries, as -errno; 0 while it does
  std::size_t in_kernel_ = 0;  // operations that it has and that have not completed
};

}  // namespace lade::detail
