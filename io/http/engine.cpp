#include "transfer.hpp"

#include <lade/error.hpp>
#include <lade/support/later.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace lade::io::http {

void transfer_list::add(transfer& last) noexcept {
  if (std::exchange(last.listed_, true)) return;
  last.previous_ = last_;
  last.next_ = nullptr;
  (last_ ? last_->next_ : first_) = &last;
  last_ = &last;
}

void transfer_list::remove(transfer& member) noexcept {
  if (!std::exchange(member.listed_, false)) return;
  (member.previous_ ? member.previous_->next_ : first_) = member.next_;
  (member.next_ ? member.next_->previous_ : last_) = member.previous_;
}

transfer& transfer_list::pop() noexcept {
  auto& first = *first_;
  remove(first);
  return first;
}

void transfer_step::begin() noexcept {
  kept_ = &where();
  try {
    service().advance(transfer_, *this);
  } catch (...) {
    failure_ = std::current_exception();
    complete("before a transfer");
  }
}

void transfer_step::end_early() noexcept {
  service().abort(transfer_);
  ended();
}

void transfer_step::ended() noexcept {
  transfer_.seen_ = transfer_.stage_;
  complete("after a transfer");
}

void transfer_step::await_resume() const {
  if (failure_) std::rethrow_exception(failure_);
  if (stopped() || ended_early()) throw error(errc::stopped, "transfer");
}

CURLM* engine::open_multi(engine& self) noexcept {
  auto* made = curl_multi_init();
  if (!made) return nullptr;
  curl_multi_setopt(made, CURLMOPT_SOCKETFUNCTION, &engine::on_socket);
  curl_multi_setopt(made, CURLMOPT_SOCKETDATA, &self);
  curl_multi_setopt(made, CURLMOPT_TIMERFUNCTION, &engine::on_timer);
  curl_multi_setopt(made, CURLMOPT_TIMERDATA, &self);
  curl_multi_setopt(made, CURLMOPT_MAXCONNECTS, static_cast<long>(least_kept));
  return made;
}

engine::engine(reactor_thread& reactor) : reactor_service(reactor), multi_(open_multi(*this)) {
  if (!multi_) throw std::bad_alloc();
}

engine::~engine() {
  idle_watch_.cancel(where());
  curl_multi_cleanup(multi_);
}

// If the pool is full, libcurl closes the oldest idle connection. So the pool must hold as many
// connections as there are concurrent transfers: else each transfer opens a new one.
void engine::attach(transfer& active) {
  if (auto failure = curl_multi_add_handle(multi_, active.easy_); failure != CURLM_OK)
    throw error(errc::failed, "begin a transfer", curl_multi_strerror(failure));
  if (++attached_ <= kept_) return;
  kept_ = attached_;
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(kept_));
}

void engine::detach(transfer& active) noexcept {
  curl_multi_remove_handle(multi_, active.easy_);
  if (--attached_ > 0) return;
  idle_since_ = clock::now();
  idle_timeout_ =
      idle_watch_.is_set() ? std::min(idle_timeout_, active.idle_timeout) : active.idle_timeout;
  auto due = support::later(idle_since_, idle_timeout_);
  if (idle_watch_.is_set() && idle_watch_.when() <= due) return;  // it checks again then
  idle_watch_.set(where(), due);
}

// libcurl closes connections that are too old only when a transfer begins. If none begins, the
// multi handle is closed with all its connections.
void engine::close_if_idle() noexcept {
  if (attached_ > 0) return;
  auto due = support::later(idle_since_, idle_timeout_);
  auto* fresh = due <= clock::now() ? open_multi(*this) : nullptr;
  if (!fresh) {
    idle_watch_.set(where(), std::max(due, clock::now() + std::chrono::seconds(1)));
    return;
  }
  curl_multi_cleanup(std::exchange(multi_, fresh));
  kept_ = least_kept;
  due_now_ = false;
  set_timer(clock::time_point::max());
}

// Whether a transfer has received part of its response.
static bool has_response(CURL* easy) noexcept {
  transfer* ended = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &ended);
  return ended && ended->head.status != 0;
}

// Sends the TCP acknowledgement of an incomplete response at once. The kernel delays that of less
// than a segment by 40 ms, and the sender may hold back the rest until it arrives (RFC 9293,
// 3.7.4). nginx over the loopback did, for a range that began in the middle of a page. The next
// request acknowledges a response that arrives whole.
static void acknowledge(int fd) noexcept {
  constexpr int at_once = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &at_once, sizeof at_once);
}

// Records the interest of libcurl, which must not be called from its callback.
int engine::on_socket(CURL* easy, curl_socket_t fd, int interest, void* self, void*) noexcept {
  unsigned events = 0;
  if (interest == CURL_POLL_IN || interest == CURL_POLL_INOUT) events |= POLLIN;
  if (interest == CURL_POLL_OUT || interest == CURL_POLL_INOUT) events |= POLLOUT;
  auto& mine = *static_cast<engine*>(self);
  if (events & POLLIN && has_response(easy)) acknowledge(fd);
  if (!(events & POLLIN) && mine.reading_ == fd) mine.reading_ = -1;
  try {
    mine.poll(fd, events);
  } catch (const std::bad_alloc&) {
    return -1;
  }
  return 0;
}

int engine::on_timer(CURLM*, long milliseconds, void* self) noexcept {
  auto& mine = *static_cast<engine*>(self);
  mine.due_now_ = milliseconds == 0;
  mine.set_timer(milliseconds <= 0 ? clock::time_point::max()
                                   : clock::now() + std::chrono::milliseconds(milliseconds));
  return 0;
}

curl_socket_t engine::on_open(void* self, curlsocktype, curl_sockaddr* to) noexcept {
  return static_cast<engine*>(self)->connections_.open(*to);
}

int engine::on_close(void* self, curl_socket_t fd) noexcept {
  auto& mine = *static_cast<engine*>(self);
  mine.connections_.remove(fd);
  mine.close(fd);
  return 0;
}

void engine::act(int fd, int events) noexcept {
  int running = 0;
  curl_multi_socket_action(multi_, fd, events, &running);
}

void engine::ready(int fd, unsigned events) noexcept {
  int happened = 0;
  if (events & (POLLIN | POLLHUP)) happened |= CURL_CSELECT_IN;
  if (events & POLLOUT) happened |= CURL_CSELECT_OUT;
  if (events & POLLERR) happened |= CURL_CSELECT_ERR;
  if (events & POLLIN) reading_ = fd;
  act(fd, happened);
  if (std::exchange(reading_, -1) == fd) acknowledge(fd);
}

void engine::expired() noexcept { due_now_ = true; }

// Repeats, since resumed coroutines may start, advance and abort transfers. The rounds are limited:
// for a server that sends endless data without content, such as chunk extensions, libcurl would
// never stop, and the reactor must get its turns.
void engine::end_turn() noexcept {
  constexpr int most_rounds = 8;
  int rounds = 0;
  do {
    if (std::exchange(due_now_, false)) act(CURL_SOCKET_TIMEOUT, 0);
    collect();
    while (!stepped_.empty()) {
      auto& stepped = stepped_.pop();
      stepped.stall_watch_.cancel(where());
      if (auto* step = std::exchange(stepped.waiting_, nullptr)) step->ended();
    }
  } while (due_now_ && ++rounds < most_rounds);
  if (due_now_) set_timer(clock::now());
}

// Moves the transfers that libcurl has ended to `stepped_`.
void engine::collect() noexcept {
  int left = 0;
  while (auto* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    auto* easy = message->easy_handle;
    auto result = message->data.result;
    transfer* ended = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &ended);
    detach(*ended);
    bool has_waited = ended->stage_ == transfer::stage::running;  // waited for the server
    if (has_waited && result == CURLE_OPERATION_TIMEDOUT) end_if_silent(*ended);
    ended->result_ = result;
    ended->require_good_head();
    ended->stage_ = transfer::stage::over;
    stepped_.add(*ended);
  }
}

void transfer::stalled() noexcept { engine_->end_if_stalled(*this); }

void engine::watch(transfer& running) noexcept {
  if (running.stall_timeout.count() == 0) return;
  running.stall_watch_.set(where(),
                           lade::support::later(running.last_byte_, running.stall_timeout));
}

void engine::end_if_silent(const transfer& timed_out) noexcept {
  auto silence = clock::now() - timed_out.last_byte_;
  connections_.end_if_silent(timed_out.easy_,
                             std::chrono::floor<std::chrono::milliseconds>(silence));
}

void engine::end_if_stalled(transfer& running) noexcept {
  if (running.stage_ != transfer::stage::running) return;
  if (lade::support::later(running.last_byte_, running.stall_timeout) > clock::now())
    return watch(running);
  auto* step = running.waiting_;
  end_if_silent(running);
  abort(running, CURLE_OPERATION_TIMEDOUT);
  (void)snprintf(running.error_text_.data(), running.error_text_.size(), "no byte for %lld ms",
                 static_cast<long long>(running.stall_timeout.count()));
  running.waiting_ = step;
  stepped_.add(running);
}

void engine::advance(transfer& active, transfer_step& step) {
  active.waiting_ = &step;
  active.last_byte_ = clock::now();
  if (active.stage_ == transfer::stage::idle) {
    active.engine_ = this;
    active.install();
    attach(active);
    active.stage_ = transfer::stage::running;
    watch(active);
  } else if (active.stage_ == transfer::stage::paused) {
    active.stage_ = transfer::stage::running;
    watch(active);
    curl_easy_pause(active.easy_, CURLPAUSE_CONT);  // may deliver the held piece and pause again
  } else {
    stepped_.add(active);
  }
}

void engine::abort(transfer& active, CURLcode result) noexcept {
  active.waiting_ = nullptr;
  active.stall_watch_.cancel(where());
  stepped_.remove(active);
  if (active.stage_ == transfer::stage::running || active.stage_ == transfer::stage::paused)
    detach(active);
  active.stage_ = transfer::stage::over;
  active.result_ = result;
}

}  // namespace lade::io::http
