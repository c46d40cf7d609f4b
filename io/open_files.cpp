#include "open_files.hpp"

#include <algorithm>
#include <new>

#include <sys/resource.h>

namespace lade::detail {

static std::size_t half_of_descriptors() noexcept {
  rlimit allowed{};
  constexpr rlim_t plenty = 1 << 20;
  if (getrlimit(RLIMIT_NOFILE, &allowed) != 0) return plenty;
  return static_cast<std::size_t>(std::clamp<rlim_t>(allowed.rlim_cur / 2, 1, plenty));
}

// Never destroyed: files may be closed at the end of the program.
open_files& open_files::of_process() {
  alignas(open_files) static std::byte memory[sizeof(open_files)];
  static auto& files = *new (memory) open_files(half_of_descriptors());
  return files;
}

bool open_files::try_count(std::atomic<std::size_t>& count, std::size_t limit) noexcept {
  auto now = count.load();
  while (now < limit)
    if (count.compare_exchange_weak(now, now + 1)) return true;
  return false;
}

void open_files::end_read(std::atomic<std::size_t>& count) noexcept {
  --count;
  if (waiting_) resume_waiters();
}

bool open_files::permit::yield_slot() noexcept {
  if (has_yielded_) return true;
  if (!try_count(from_->yielded_, std::max<std::size_t>(from_->limit_ / 2, 1))) return false;
  has_yielded_ = true;
  from_->end_read(from_->reads_);
  return true;
}

void open_files::hold(const context* opener) {
  std::lock_guard lock(mutex_);
  auto& now = holders_[opener];
  ++now.files;
  ++held_;
  if (now.waiting > 0) ++stuck_files_;
}

void open_files::end_hold(const context* opener) noexcept {
  {
    std::lock_guard lock(mutex_);
    auto& now = holders_.at(opener);
    --now.files;
    --held_;
    if (now.waiting > 0) --stuck_files_;
    erase_unused(opener);
  }
  if (waiting_) resume_waiters();
}

void open_files::erase_unused(const context* opener) noexcept {
  auto found = holders_.find(opener);
  if (found->second.files == 0 && found->second.waiting == 0) holders_.erase(found);
}

// Call when a file has been closed.
void open_files::resume_waiters() noexcept {
  wait_list served;
  {
    std::lock_guard lock(mutex_);
    while (!readers_.empty() && try_read()) served.push_back(*readers_.settle_first());
    if (auto* first = static_cast<close_awaiter*>(openers_.settle_first())) {
      first->closed_ = true;
      first->waits_ = false;
      end_waiting(first->opener_);
      served.push_back(*first);
    }
    waiting_ = !readers_.empty() || !openers_.empty();
  }
  served.resume_all();
}

void open_files::begin_waiting(const context* opener) {
  if (!opener) {
    ++stuck_reads_;
  } else if (auto& now = holders_[opener]; now.waiting++ == 0) {
    stuck_files_ += now.files;
  }
}

void open_files::end_waiting(const context* opener) noexcept {
  if (!opener) {
    --stuck_reads_;
    return;
  }
  if (auto& now = holders_.at(opener); --now.waiting == 0) stuck_files_ -= now.files;
  erase_unused(opener);
}

open_files::permit open_files::read_awaiter::await_resume() {
  finish("wait for a descriptor");
  return permit(files_);
}

bool open_files::close_awaiter::begin() {
  files_.waiting_ = true;
  files_.begin_waiting(opener_);
  waits_ = files_.may_close();
  if (!waits_) files_.end_waiting(opener_);
  return waits_;
}

bool open_files::close_awaiter::await_resume() {
  try {
    finish("wait for a descriptor");
  } catch (...) {
    std::lock_guard lock(files_.mutex_);
    if (waits_) files_.end_waiting(opener_);
    throw;
  }
  return closed_;
}

}  // namespace lade::detail
