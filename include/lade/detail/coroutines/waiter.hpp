// A coroutine that waits in an event, a semaphore or a channel.

#pragma once

#include <lade/detail/common/fatal.hpp>
#include <lade/detail/coroutines/mutex.hpp>
#include <lade/detail/coroutines/parked_coroutine.hpp>
#include <lade/detail/runtime/activity.hpp>
#include <lade/detail/runtime/executor.hpp>

#include <coroutine>
#include <cstddef>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

namespace lade::detail {

class listed_waiter;

// Waiters in the order of their arrival. Guarded by the mutex of the owner of the list.
class wait_list {
 public:
  bool empty() const noexcept { return !first_; }

  // For destructors: ends the process if there are waiters, which would wait for ever.
  void require_empty(const char* sentence) const noexcept {
    if (first_) fatal(sentence);
  }
  listed_waiter* first() const noexcept { return first_; }  // null if there is none
  void push_back(listed_waiter& added) noexcept;
  void push_front(listed_waiter& added) noexcept;
  void append(const wait_list& added) noexcept;  // whose waiters then belong to this list
  void remove(listed_waiter& gone) noexcept;

  // Takes the first waiter out and settles it: it can no longer be stopped, and its owner must
  // resume it, after the mutex has been released. Null if there is none.
  listed_waiter* settle_first() noexcept;

  // The same for the first waiter for which `chosen(waiter)` returns true.
  template <class Chosen>
  listed_waiter* settle_first(Chosen chosen) noexcept;

  // Settles and takes out all waiters; resumes all waiters of a list of settled ones, and empties
  // it.
  wait_list settle_all() noexcept;
  void resume_all();
  void resume_all_later();  // each by resume_later()

  std::size_t size() const noexcept;  // counts them

 private:
  listed_waiter* first_ = nullptr;
  listed_waiter* last_ = nullptr;
};

// A coroutine in a wait_list; the base of awaiters whose wait a stop does not end. The party that
// wakes a waiter first stores in it the value that it waits for. So a resumed waiter does not check
// again.
class listed_waiter : private parked_coroutine {
 public:
  // Resumes a settled waiter, which is gone when this returns. Posts to its executor, so that the
  // resumed coroutine may destroy the one that calls this. Without an executor it resumes inside
  // the call.
  void resume() { post(false); }

  // The same, but on a reactor's thread the coroutine resumes at the end of the turn, so that it
  // finds everything that has completed in the turn.
  void resume_later() { post(true); }

  // The same, but on a thread of its executor the coroutine runs inside of this call.
  void resume_here_or_later() {
    auto* context = execution();
    if (context && context->home && !context->home->is_current())
      post(true);
    else
      parked_coroutine::resume_here();
  }

  // Whether its executor has an idle thread, which would run the coroutine at once.
  bool has_idle_thread() const noexcept {
    auto* context = execution();
    return context && context->home && context->home->has_idle_thread();
  }

 protected:
  // Parks the coroutine in `list`, unless `settled()` says under the mutex that there is nothing
  // to wait for. Returns whether it parked.
  template <class Promise, class Settled>
  bool park_unstoppable(std::coroutine_handle<Promise> coroutine, mutex& guard, wait_list& list,
                        Settled settled) {
    note(coroutine);
    return wait(guard, list, settled);
  }

  // For a caller that holds the mutex of `list`, after note(): parks the coroutine as the first of
  // the list.
  void park_first(wait_list& list) noexcept {
    list.push_front(*this);
    progress_ = progress::parked;
  }
  using parked_coroutine::execution;
  using parked_coroutine::note;

 private:
  friend class wait_list;
  friend class waiter;
  enum class progress : unsigned char { arriving, parked, settled, stopped };

  void post(bool later) {
    auto* context = execution();
    if (!context || !context->home) return parked_coroutine::resume_here();
    job work = {resume_settled, this, context->distance};
    work.may_wait = later;
    context->home->post(work);
  }

  template <class Settled>
  bool wait(mutex& guard, wait_list& list, Settled& settled) {
    std::lock_guard lock(guard);
    if (progress_ == progress::stopped) return false;
    if (settled()) {
      progress_ = progress::settled;  // a later stop has no effect
      return false;
    }
    list.push_back(*this);
    progress_ = progress::parked;
    return true;
  }

  static void resume_settled(void* settled) noexcept {
    auto& self = *static_cast<listed_waiter*>(settled);
    name_step("after a wait", self.execution()->stage_number);
    self.parked_coroutine::resume_here();
  }

  listed_waiter* next_ = nullptr;
  listed_waiter* previous_ = nullptr;
  progress progress_ = progress::arriving;  // guarded by the mutex as long as a stop is possible
};

// The base of awaiters whose wait ends when the coroutine is asked to stop.
class waiter : public listed_waiter {
 protected:
  // Parks the coroutine in `list`, unless `settled()` says under the mutex that there is nothing
  // to wait for, or a stop was requested. Returns whether it parked. `settled` may be called twice,
  // with the mutex released in between: the second call must accept the effects of the first.
  template <class Promise, class Settled>
  bool park(std::coroutine_handle<Promise> coroutine, mutex& guard, wait_list& list,
            Settled settled) {
    note(coroutine);
    if (!stop_possible()) return wait(guard, list, settled);
    if (execution()->stop.stop_requested()) {
      progress_ = progress::stopped;
      return false;
    }
    {  // most waits end at once: only one that does not registers for a stop
      std::lock_guard lock(guard);
      if (settled()) return false;
    }
    return watch_and_wait(guard, list, settled);
  }

  // The same for a waiter that has just checked: `settled` is called once.
  template <class Promise, class Settled>
  bool park_after_look(std::coroutine_handle<Promise> coroutine, mutex& guard, wait_list& list,
                       Settled settled) {
    note(coroutine);
    return stop_possible() ? watch_and_wait(guard, list, settled) : wait(guard, list, settled);
  }

  // Must be called first when the coroutine resumes: throws error(stopped, doing) if it was
  // stopped.
  void finish(std::string_view doing) {
    if (has_stopped()) throw_stopped(doing);
  }
  bool has_stopped() noexcept {
    on_stop_.reset();
    return progress_ == progress::stopped;
  }

 private:
  struct stop_request {
    waiter& self;
    void operator()() const noexcept { self.stop(); }
  };

  bool stop_possible() const noexcept { return execution() && execution()->stop.stop_possible(); }

  template <class Settled>
  bool watch_and_wait(mutex& guard, wait_list& list, Settled& settled) {
    mutex_ = &guard;
    list_ = &list;
    on_stop_.emplace(execution()->stop, stop_request{*this});
    return wait(guard, list, settled);
  }

  void stop() noexcept;
  [[noreturn]] static void throw_stopped(std::string_view doing);

  mutex* mutex_ = nullptr;  // these two are for stop()
  wait_list* list_ = nullptr;
  std::optional<stop_callback<stop_request>> on_stop_;
};

// Short, and called for every item of a channel.
inline void wait_list::push_back(listed_waiter& added) noexcept {
  added.previous_ = last_;
  added.next_ = nullptr;
  (last_ ? last_->next_ : first_) = &added;
  last_ = &added;
}

inline void wait_list::push_front(listed_waiter& added) noexcept {
  added.previous_ = nullptr;
  added.next_ = first_;
  (first_ ? first_->previous_ : last_) = &added;
  first_ = &added;
}

inline void wait_list::remove(listed_waiter& gone) noexcept {
  (gone.previous_ ? gone.previous_->next_ : first_) = gone.next_;
  (gone.next_ ? gone.next_->previous_ : last_) = gone.previous_;
}

inline listed_waiter* wait_list::settle_first() noexcept {
  return settle_first([](listed_waiter&) { return true; });
}

template <class Chosen>
listed_waiter* wait_list::settle_first(Chosen chosen) noexcept {
  auto* found = first_;
  while (found && !chosen(*found)) found = found->next_;
  if (!found) return nullptr;
  remove(*found);
  found->progress_ = listed_waiter::progress::settled;
  return found;
}

}  // namespace lade::detail
