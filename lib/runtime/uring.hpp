// The reactor on io_uring: one ring, and one system call per turn of the loop.
//
// Only the reactor's thread uses the ring. An operation moves through these states:
//
//   submitted_ --fill--> submission queue --io_uring_enter--> kernel --collect--> finish()
//                        (status started, counted by in_kernel_)
//
// cancel_begun() queues a cancellation in cancelled_. The operation still completes once, with the
// result of the kernel. Other threads wake the loop through an eventfd, which the ring polls. If
// the kernel refuses further entries, refuse() ends all operations that it has not accepted.

#pragma once

#include <lade/detail/runtime/reactor.hpp>

#include <string>
#include <vector>

#include <liburing.h>

namespace lade::detail {

class uring final : public reactor {
 public:
  // Throws error with the kernel's reason if io_uring is refused. After enter_thread(), only the
  // reactor's thread may use the ring.
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
  void withdraw(const io_uring_sqe& entry) noexcept;
  void refuse_waiting() noexcept;
  void wait_without_ring(clock::time_point deadline) noexcept;

  io_uring uring_{};
  const char* mode_ = nullptr;  // the optional features that the kernel has
  int wake_ = -1;
  bool wake_polled_ = false;
  operation_queue cancelled_;  // operations in flight whose cancellation is not yet submitted
  std::vector<int> closing_;   // descriptors to close
  int refused_ = 0;            // -errno of the refusal of entries; 0: none
  std::size_t in_kernel_ = 0;  // operations in flight
};

}  // namespace lade::detail
