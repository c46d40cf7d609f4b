// The reactor on io_uring: one ring, one system call for each turn of the loop.

#pragma once

#include <lade/detail/reactor.hpp>

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
  void turn(clock::time_point deadline) override;
  void cancel_begun(io_operation& operation) noexcept override;
  void wake() noexcept override;
  void enter_thread() override;

  void set_up();
  void require_all_calls();

  void fill();
  bool fill_next();
  void add_wake();
  void add_close(int fd);
  void add_cancel(io_operation& operation);
  void add(io_operation& operation);
  bool waiting_for_space() const noexcept;

  int submit_and_wait(clock::time_point deadline);
  void collect();
  void collect(const io_uring_cqe& completion);

  io_uring uring_{};
  const char* mode_ = nullptr;  // the optional features that the kernel has
  int wake_ = -1;
  bool wake_polled_ = false;
  operation_queue cancelled_;  // begun, and to be cancelled
  std::vector<int> closing_;
};

}  // namespace lade::detail
