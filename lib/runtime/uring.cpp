#include "uring.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace lade::detail {

// Values of user_data that are not the address of an operation.
static constexpr std::uint64_t ring_nobody = 0;
static constexpr std::uint64_t ring_wake = 1;

static void ring_check(int result, std::string_view doing) {
  if (result < 0) raise(-result, doing);
}

uring::uring() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) raise(errno, "make a reactor");
  try {
    set_up();
  } catch (...) {
    ::close(wake_);
    throw;
  }
}

uring::~uring() {
  io_uring_queue_exit(&uring_);
  ::close(wake_);
  for (int fd : closing_) ::close(fd);
}

// Tries the newest optional features first, and fewer of them while the kernel answers EINVAL. They
// change the speed little. The ring is created disabled: the reactor's thread enables it, and so
// becomes its single issuer.
void uring::set_up() {
  constexpr unsigned entries = 256;
  constexpr unsigned always = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED;
  constexpr unsigned cooperative =
      IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
  constexpr std::array<std::pair<unsigned, const char*>, 4> ladder{{
      {cooperative | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, "DEFER_TASKRUN"},
      {cooperative, "COOP_TASKRUN"},
      {IORING_SETUP_SUBMIT_ALL, "SUBMIT_ALL"},
      {0, "no optional features"},
  }};
  int result = -EINVAL;
  for (auto rung = ladder.begin(); result == -EINVAL && rung != ladder.end(); ++rung) {
    io_uring_params parameters{};
    parameters.flags = always | rung->first;
    parameters.cq_entries = 16 * entries;
    result = io_uring_queue_init_params(entries, &uring_, &parameters);
    mode_ = rung->second;
  }
  ring_check(result, "set up io_uring");
  try {
    require_all_calls();
  } catch (...) {
    io_uring_queue_exit(&uring_);
    throw;
  }
}

// Throws error if this kernel cannot run the loop. A sandbox may refuse any of the three system
// calls of io_uring. Kernels before 5.13 lack timeouts in io_uring_enter and multishot polls.
void uring::require_all_calls() {
  constexpr unsigned features = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_RSRC_TAGS;
  if ((uring_.features & features) != features) raise(ENOSYS, "set up io_uring");
  auto* probe = io_uring_get_probe_ring(&uring_);
  if (!probe) raise(EPERM, "probe io_uring");
  bool complete =
      std::ranges::all_of(std::array{IORING_OP_OPENAT, IORING_OP_READ, IORING_OP_STATX,
                                     IORING_OP_CLOSE, IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL},
                          [&](int code) { return io_uring_opcode_supported(probe, code) != 0; });
  io_uring_free_probe(probe);
  if (!complete) raise(ENOSYS, "set up io_uring");
  int entered = io_uring_enter(static_cast<unsigned>(uring_.ring_fd), 0, 0, 0, nullptr);
  if (entered < 0 && entered != -EBADFD) raise(-entered, "enter io_uring");
}

void uring::enter_thread() {
  // The shared library of liburing 2.3 does not export io_uring_enable_rings.
  auto fd = static_cast<unsigned>(uring_.ring_fd);
  ring_check(io_uring_register(fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0), "enable io_uring");
  // An open whose metadata is not cached blocks a kernel thread; the default is four per CPU.
  std::array<unsigned, 2> bounded_and_unbounded{64, 0};
  (void)io_uring_register_iowq_max_workers(&uring_, bounded_and_unbounded.data());
}

std::string uring::describe() const {
  utsname kernel{};
  uname(&kernel);
  return fmt::format("io_uring (Linux {}, {})", kernel.release, mode_);
}

void uring::close(int fd) noexcept {
  try {
    closing_.push_back(fd);
  } catch (const std::bad_alloc&) {
    ::close(fd);
  }
}

void uring::cancel_begun(io_operation& operation) noexcept {
  cancelled_.push(operation, io_operation::status::cancelling);
}

// The eventfd is never read: its multishot poll reports every write.
void uring::wake() noexcept { (void)eventfd_write(wake_, 1); }

void uring::turn(clock::time_point deadline) noexcept {
  if (refused_) {
    bool had_waiting = !submitted_.empty();
    refuse_waiting();
    wait_without_ring(had_waiting ? clock::time_point::min() : deadline);
    return collect();
  }
  fill();
  int result = submit_and_wait(waiting_for_space() ? clock::time_point::min() : deadline);
  constexpr std::array transient{-ETIME, -EINTR, -EAGAIN, -EBUSY, -ENOMEM};
  if (result < 0 && std::ranges::find(transient, result) == transient.end()) refuse(result);
  collect();
}

// The kernel accepts no more entries: the process entered a sandbox, or the ring's descriptor was
// closed. The reactor still runs jobs and timers. Operations that the kernel has not accepted, and
// all later ones, complete with `failure`. Operations in the kernel complete as before.
void uring::refuse(int failure) noexcept {
  refused_ = failure;
  refuse_waiting();
  auto& queue = uring_.sq;
  auto accepted = *queue.khead;
  for (auto entry = accepted; entry != queue.sqe_tail; ++entry)
    withdraw(queue.sqes[entry & *queue.kring_mask]);
  queue.sqe_head = queue.sqe_tail = *queue.ktail = accepted;
}

void uring::withdraw(const io_uring_sqe& entry) noexcept {
  if (entry.user_data == ring_nobody && entry.opcode == IORING_OP_CLOSE) {
    ::close(entry.fd);
  } else if (entry.user_data != ring_nobody && entry.user_data != ring_wake) {
    --in_kernel_;
    finish(*reinterpret_cast<io_operation*>(entry.user_data), refused_);
  }
}

void uring::refuse_waiting() noexcept {
  while (auto* refused = cancelled_.pop()) refused->progress = io_operation::status::outside;
  while (auto* operation = submitted_.pop()) finish(*operation, refused_);
  for (int fd : closing_) ::close(fd);
  closing_.clear();
}

// Polls for completions: after a refusal, waiting on the ring fails.
void uring::wait_without_ring(clock::time_point deadline) noexcept {
  constexpr std::chrono::milliseconds poll_interval{20};
  if (in_kernel_ > 0) {
    (void)io_uring_get_events(&uring_);
    deadline = std::min(deadline, clock::now() + poll_interval);
  }
  pollfd woken{.fd = wake_, .events = POLLIN, .revents = 0};
  eventfd_t writes = 0;
  if (::poll(&woken, 1, wait_milliseconds(deadline)) > 0) (void)eventfd_read(wake_, &writes);
}

void uring::fill() noexcept {
  while (io_uring_sq_space_left(&uring_) > 0 && fill_next()) {}
}

bool uring::fill_next() noexcept {
  if (!wake_polled_) {
    add_wake();
  } else if (auto* cancelled = cancelled_.pop()) {
    add_cancel(*cancelled);
  } else if (!closing_.empty()) {  // before opens, which may need the descriptors
    add_close(closing_.back());
    closing_.pop_back();
  } else if (auto* operation = submitted_.pop()) {
    add(*operation);
  } else {
    return false;
  }
  return true;
}

bool uring::waiting_for_space() const noexcept {
  return !cancelled_.empty() || !submitted_.empty() || !closing_.empty() || !wake_polled_;
}

void uring::add_wake() noexcept {
  auto* entry = io_uring_get_sqe(&uring_);
  io_uring_prep_poll_multishot(entry, wake_, POLLIN);
  io_uring_sqe_set_data64(entry, ring_wake);
  wake_polled_ = true;
}

void uring::add_close(int fd) noexcept {
  auto* entry = io_uring_get_sqe(&uring_);
  io_uring_prep_close(entry, fd);
  io_uring_sqe_set_data64(entry, ring_nobody);
  if (uring_.features & IORING_FEAT_CQE_SKIP) io_uring_sqe_set_flags(entry, IOSQE_CQE_SKIP_SUCCESS);
}

void uring::add_cancel(io_operation& operation) noexcept {
  auto* entry = io_uring_get_sqe(&uring_);
  io_uring_prep_cancel64(entry, reinterpret_cast<std::uintptr_t>(&operation), 0);
  io_uring_sqe_set_data64(entry, ring_nobody);
  operation.progress = io_operation::status::outside;
}

void uring::add(io_operation& operation) noexcept {
  auto* entry = io_uring_get_sqe(&uring_);
  switch (operation.what) {
    case io_operation::kind::open:
      io_uring_prep_openat(entry, operation.fd, operation.path, operation.flags, 0666);
      break;
    case io_operation::kind::read:
      io_uring_prep_read(entry, operation.fd, operation.data,
                         static_cast<unsigned>(std::min(operation.bytes, io_operation::max_bytes)),
                         operation.offset);
      if (operation.apart) io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
      break;
    case io_operation::kind::stat:
      io_uring_prep_statx(entry, operation.fd, operation.path, operation.flags, STATX_BASIC_STATS,
                          static_cast<struct statx*>(operation.data));
      break;
    case io_operation::kind::close: io_uring_prep_close(entry, operation.fd); break;
    case io_operation::kind::poll:
      io_uring_prep_poll_add(entry, operation.fd, static_cast<unsigned>(operation.flags));
      break;
  }
  io_uring_sqe_set_data(entry, &operation);
  operation.progress = io_operation::status::started;
  ++in_kernel_;
}

int uring::submit_and_wait(clock::time_point deadline) noexcept {
  if (deadline == clock::time_point::min()) return io_uring_submit_and_get_events(&uring_);
  io_uring_cqe* first = nullptr;
  if (deadline == clock::time_point::max())
    return io_uring_submit_and_wait_timeout(&uring_, &first, 1, nullptr, nullptr);
  auto left = std::max(deadline - clock::now(), clock::duration::zero());
  auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  __kernel_timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  return io_uring_submit_and_wait_timeout(&uring_, &first, 1, &timeout, nullptr);
}

// Handles all completions of the queue. If the queue has overflowed, the rest follows in the next
// turn, which does not wait.
void uring::collect() noexcept {
  unsigned head = 0;
  unsigned count = 0;
  io_uring_cqe* completion = nullptr;
  io_uring_for_each_cqe(&uring_, head, completion) {
    collect(*completion);
    ++count;
  }
  io_uring_cq_advance(&uring_, count);
}

void uring::collect(const io_uring_cqe& completion) noexcept {
  if (completion.user_data == ring_wake) {
    wake_polled_ = (completion.flags & IORING_CQE_F_MORE) != 0;
  } else if (completion.user_data != ring_nobody) {
    auto& operation = *reinterpret_cast<io_operation*>(completion.user_data);
    if (operation.progress == io_operation::status::cancelling) cancelled_.remove(operation);
    --in_kernel_;
    finish(operation, completion.res);
  }
}

}  // namespace lade::detail
