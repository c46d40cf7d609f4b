#include <lade/reactor_service.hpp>

#include <cerrno>

#include <poll.h>

namespace lade {

reactor_service::reactor_service(detail::reactor& where) noexcept : reactor_(where) {
  timer_.owner = this;
  timer_.fired = [](detail::timer& due) noexcept { static_cast<timer&>(due).owner->expired(); };
}

reactor_service::~reactor_service() {
  reactor_.remove(timer_);
  for (auto& [fd, armed] : polls_) disarm(*armed);
}

void reactor_service::set_timer(clock::time_point when) noexcept {
  reactor_.remove(timer_);
  timer_.deadline = when;
  if (when != clock::time_point::max()) reactor_.start(timer_);
}

// A submitted poll cannot be changed, so it is replaced by a new one.
void reactor_service::poll(int fd, unsigned events) {
  auto found = polls_.find(fd);
  auto* before = found == polls_.end() ? nullptr : found->second;
  if (before && events != 0 && static_cast<unsigned>(before->flags) == events) return;
  if (before && events != 0 && !before->armed) {  // within ready(): happened() submits it again
    before->flags = static_cast<int>(events);
    return;
  }
  if (events != 0) arm(fd, events);
  if (before) {
    if (events == 0) polls_.erase(found);
    disarm(*before);
  }
}

void reactor_service::arm(int fd, unsigned events) {
  auto& added = reactor_.add_poll();
  try {
    polls_.insert_or_assign(fd, &added);
  } catch (...) {
    reactor_.remove_poll(added);
    throw;
  }
  added.what = detail::io_operation::kind::poll;
  added.fd = fd;
  added.flags = static_cast<int>(events);
  added.owner = this;
  added.completed = [](detail::io_operation& done) noexcept {
    auto& armed = static_cast<detail::polled&>(done);
    armed.armed = false;
    if (armed.owner)
      armed.owner->happened(armed);
    else
      armed.where->remove_poll(armed);
  };
  added.armed = true;
  reactor_.submit(added);
}

// If the poll is submitted, its completion removes it, since it has no owner any more. Otherwise
// this is called within happened(), which removes it.
void reactor_service::disarm(detail::polled& armed) noexcept {
  armed.owner = nullptr;
  if (armed.armed) reactor_.cancel(armed);
}

void reactor_service::happened(detail::polled& armed) noexcept {
  auto result = armed.result;
  if (result != -EINTR) ready(armed.fd, result < 0 ? POLLERR : static_cast<unsigned>(result));
  if (!armed.owner) return reactor_.remove_poll(armed);
  armed.armed = true;
  reactor_.submit(armed);
}

}  // namespace lade
