#include <lade/detail/runtime/operation.hpp>
#include <lade/error.hpp>
#include <lade/reactor_operation.hpp>
#include <lade/runtime.hpp>
#include <lade/trace.hpp>

#include <cerrno>
#include <exception>

#include <unistd.h>

namespace lade::detail {

bool reactor_await::suspend(std::coroutine_handle<> coroutine, const promise_base* base) {
  if (!base || !base->context || !base->context->runtime)
    throw error(errc::no_runtime, "await the reactor");
  note(coroutine, base);
  auto& context = *execution();
  if (!reactor_) reactor_ = &context.runtime->reactor();
  if (context.stop.stop_requested()) {
    stopped_ = true;
    return false;
  }
  if (context.stop.stop_possible()) on_stop_.emplace(context.stop, request_stop{*this});
  if (this_executor == reactor_)
    begin_on_reactor();
  else
    reactor_->post(
        {[](void* self) noexcept { static_cast<reactor_await*>(self)->begin_on_reactor(); }, this});
  return true;  // from here on the coroutine may be running elsewhere, and *this may be gone
}

// On the thread that asks for the stop, perhaps while on_stop_ is still being made.
void reactor_await::request_stop::operator()() const noexcept {
  self.stop_posted_ = true;
  self.reactor_->post(
      {[](void* waiting) noexcept { static_cast<reactor_await*>(waiting)->stop_on_reactor(); },
       &self});
}

void reactor_await::begin_on_reactor() noexcept {
  begun_ = true;
  if (stopped_)
    complete("after a stop");
  else
    begin();
}

void reactor_await::stop_on_reactor() noexcept {
  stop_posted_ = false;
  ended_early_ = true;
  if (completed_)
    resume_at_home();
  else if (begun_)
    end_early();
  else
    stopped_ = true;
}

void reactor_await::complete(const char* after) noexcept {
  name_step(after, execution()->stage_number);
  completed_ = true;
  on_stop_.reset();  // waits for a request that is being made; none can follow
  if (!stop_posted_) resume_at_home();
}

operation::awaiter::awaiter(const io_operation& call) noexcept : io_operation(call) {
  completed = [](io_operation& self) noexcept { static_cast<awaiter&>(self).ended(); };
}

static const char* after_operation(io_operation::kind what) noexcept {
  switch (what) {
    case io_operation::kind::open: return "after an open";
    case io_operation::kind::read: return "after a read";
    case io_operation::kind::stat: return "after a stat";
    case io_operation::kind::close: return "after a close";
    case io_operation::kind::poll: return "after a poll";
  }
  return "";
}

void operation::awaiter::ended() noexcept {
  if (result == -EINTR) {
    if (!ended_early()) return where().submit(*this);
    result = -ECANCELED;
  }
  if (trace()) record();
  complete(after_operation(what));
}

static const char* operation_name(io_operation::kind what) noexcept {
  switch (what) {
    case io_operation::kind::open: return "open";
    case io_operation::kind::read: return "read";
    case io_operation::kind::stat: return "stat";
    case io_operation::kind::close: return "close";
    case io_operation::kind::poll: return "poll";
  }
  return "";
}

// A trace that has no memory for a line continues without it.
void operation::awaiter::record() const noexcept {
  try {
    trace()->add_io(operation_name(what), path ? path : "", begun_at_, clock::now(), result);
  } catch (const std::exception&) {}
}

std::int64_t operation::awaiter::await_resume() const noexcept {
  return stopped() ? -ECANCELED : result;
}

void operation::awaiter::begin() noexcept {
  if (trace()) begun_at_ = clock::now();
  where().submit(*this);
}

void operation::awaiter::end_early() noexcept { where().cancel(*this); }

sleep_until::awaiter::awaiter(clock::time_point time) noexcept {
  deadline = time;
  fired = [](timer& self) noexcept {
    static_cast<awaiter&>(self).slept_ = true;
    static_cast<awaiter&>(self).complete("after a sleep");
  };
}

void sleep_until::awaiter::begin() noexcept { where().start(*this); }

void sleep_until::awaiter::end_early() noexcept {
  where().remove(*this);
  complete("after a sleep");
}

}  // namespace lade::detail

namespace lade {

void close_descriptor(int fd) noexcept {
  if (auto* here = detail::current_reactor())
    here->close(fd);
  else
    ::close(fd);
}

std::size_t operations_in_flight() noexcept {
  auto* here = detail::current_reactor();
  return here ? here->in_flight() : 0;
}

}  // namespace lade
