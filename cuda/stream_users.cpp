#include "stream_users.hpp"

#include <algorithm>
#include <utility>

#include <cuda_runtime_api.h>

namespace lade::cuda {

bool stream_users::is_same(const stream& a, const stream& b) noexcept {
  return a.handle() == b.handle() && a.on() == b.on();
}

bool stream_users::is_of_thread(const stream& user) noexcept {
  return user.handle() == cudaStreamPerThread;
}

void stream_users::set(const stream& on, std::optional<event> last) {
  auto found = std::ranges::find_if(users_, [&](auto& each) { return is_same(each.on, on); });
  if (found == users_.end() || is_of_thread(on))
    users_.push_back({on, std::move(last)});
  else
    found->last = std::move(last);
}

// The per-thread default stream has one handle in all threads, so an event must be recorded on this
// thread.
void stream_users::use_on(const stream& on) {
  set(on, is_of_thread(on) ? std::optional(on.record()) : std::nullopt);
}

void stream_users::let_wait(const stream& next) const {
  for (auto& each : users_) {
    if (is_same(each.on, next) && !is_of_thread(next)) continue;
    next.wait(each.last ? *each.last : each.on.record());
  }
}

// If recording fails, the stream remains a user without a known last point.
void stream_users::record_all() noexcept {
  for (auto& each : users_) {
    if (each.last) continue;
    try {
      each.last = each.on.record();
    } catch (...) {}
  }
}

}  // namespace lade::cuda
