#include "transfer.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/http/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>

#include <poll.h>

namespace lade::io::http {

static char small_letter(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, small_letter, small_letter);
}

std::string_view header_value(const header_list& headers, std::string_view name) noexcept {
  for (auto& [each, value] : headers)
    if (equal_ignoring_case(each, name)) return value;
  return {};
}

std::optional<std::uint64_t> response_head::length() const noexcept {
  auto text = value("content-length");
  std::uint64_t bytes = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return bytes;
}

std::string_view without_blanks(std::string_view text) noexcept {
  auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// A status line begins another response: what came before was informational (RFC 9110, 15.2), the
// answer of a proxy, or a request to authenticate.
std::size_t transfer::take_header(std::string_view line) {
  last_byte_ = std::chrono::steady_clock::now();
  if (line.starts_with("HTTP/")) {
    head = {};
    head.headers.reserve(16);
    auto code = line.substr(std::min(line.find(' ') + 1, line.size())).substr(0, 3);
    std::from_chars(code.data(), code.data() + code.size(), head.status);
  } else if (auto colon = line.find(':'); colon != std::string_view::npos) {
    head.headers.emplace_back(without_blanks(line.substr(0, colon)),
                              without_blanks(line.substr(colon + 1)));
  } else if (without_blanks(line).empty()) {
    head.is_complete = true;
  }
  return line.size();
}

void transfer::begin_body() {
  auto length = head.value("content-encoding").empty() ? head.length() : std::nullopt;
  if (allocates_in && length && *length <= most_bytes) {
    if (auto taken = try_allocate(*allocates_in, static_cast<std::size_t>(*length))) {
      content = *std::move(taken);
      memory = content.bytes();
    }
  }
  if (share && !memory.empty() && share->try_acquire(memory.size())) room = memory;
}

std::size_t transfer::take_body(const char* data, std::size_t bytes) {
  last_byte_ = std::chrono::steady_clock::now();
  if (head.status >= 300) {
    constexpr std::size_t enough = 1024;
    refusal.append(data, std::min(bytes, enough - std::min(enough, refusal.size())));
    return bytes;
  }
  if (expects_part && head.status != 206) {
    misfits = true;
    return 0;
  }
  if (!std::exchange(has_begun_, true)) begin_body();
  if (bytes > room.size() - filled) {
    wanted = bytes;
    stage_ = stage::paused;
    engine_->stepped_.add(*this);
    return CURL_WRITEFUNC_PAUSE;
  }
  std::memcpy(room.data() + filled, data, bytes);
  filled += bytes;
  return bytes;
}

// To libcurl, a connection that ends within the headers ends a response without a body.
void transfer::require_complete_head() noexcept {
  if (result_ != CURLE_OK || head.is_complete) return;
  result_ = CURLE_PARTIAL_FILE;
  (void)snprintf(error_text_.data(), error_text_.size(), "the headers end too early");
}

std::size_t transfer::give_body(char* into, std::size_t bytes) noexcept {
  last_byte_ = std::chrono::steady_clock::now();
  bytes = std::min(bytes, outgoing.size() - sent);
  if (bytes > 0) std::memcpy(into, outgoing.data() + sent, bytes);
  sent += bytes;
  return bytes;
}

// libcurl is C: an exception must not pass through it.
void transfer::install() {
  using callback = std::size_t (*)(char*, std::size_t, std::size_t, void*);
  callback body = [](char* data, std::size_t, std::size_t bytes, void* self) -> std::size_t {
    try {
      return static_cast<transfer*>(self)->take_body(data, bytes);
    } catch (const std::bad_alloc&) {
      return 0;
    }
  };
  callback header = [](char* data, std::size_t, std::size_t bytes, void* self) -> std::size_t {
    try {
      return static_cast<transfer*>(self)->take_header({data, bytes});
    } catch (const std::bad_alloc&) {
      return 0;
    }
  };
  callback more = [](char* into, std::size_t size, std::size_t count, void* self) -> std::size_t {
    return static_cast<transfer*>(self)->give_body(into, size * count);
  };
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_.data());
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_READFUNCTION, more);
  curl_easy_setopt(easy_, CURLOPT_READDATA, this);
  using seek = int (*)(void*, curl_off_t, int);
  seek rewind = [](void* self, curl_off_t offset, int) -> int {
    static_cast<transfer*>(self)->sent = static_cast<std::size_t>(offset);
    return CURL_SEEKFUNC_OK;
  };
  curl_easy_setopt(easy_, CURLOPT_SEEKFUNCTION, rewind);
  curl_easy_setopt(easy_, CURLOPT_SEEKDATA, this);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETFUNCTION, &engine::on_close);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETDATA, engine_);
}

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

engine::engine(detail::reactor& where) : reactor_service(where), multi_(curl_multi_init()) {
  constexpr long kept_connections = 1024;
  if (!multi_) throw std::bad_alloc();
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &engine::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &engine::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kept_connections);
}

engine::~engine() { curl_multi_cleanup(multi_); }

// What libcurl asks for from its callbacks is noted, and done when it has returned.
int engine::on_socket(CURL*, curl_socket_t fd, int wanted, void* self, void*) noexcept {
  unsigned events = 0;
  if (wanted == CURL_POLL_IN || wanted == CURL_POLL_INOUT) events |= POLLIN;
  if (wanted == CURL_POLL_OUT || wanted == CURL_POLL_INOUT) events |= POLLOUT;
  try {
    static_cast<engine*>(self)->poll(fd, events);
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

int engine::on_close(void* self, curl_socket_t fd) noexcept {
  static_cast<engine*>(self)->close(fd);
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
  act(fd, happened);
}

void engine::expired() noexcept { due_now_ = true; }

// What is resumed here may begin, advance and abort transfers.
void engine::end_turn() noexcept {
  do {
    while (std::exchange(due_now_, false)) act(CURL_SOCKET_TIMEOUT, 0);
    collect();
    while (!stepped_.empty()) {
      auto& stepped = stepped_.pop();
      where().remove(stepped.stall_watch_);
      if (auto* who = std::exchange(stepped.waiting_, nullptr)) who->ended();
    }
  } while (due_now_);
}

// The transfers that libcurl has ended.
void engine::collect() noexcept {
  int left = 0;
  while (auto* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    auto* easy = message->easy_handle;
    auto result = message->data.result;
    transfer* ended = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &ended);
    curl_multi_remove_handle(multi_, easy);
    ended->result_ = result;
    ended->require_complete_head();
    ended->stage_ = transfer::stage::over;
    stepped_.add(*ended);
  }
}

void engine::watch(transfer& running) noexcept {
  if (running.stall_timeout.count() == 0) return;
  auto& alarm = running.stall_watch_;
  alarm.watched = &running;
  alarm.deadline = running.last_byte_ + running.stall_timeout;
  alarm.fired = [](detail::timer& due) noexcept {
    auto& stalled = *static_cast<transfer::watch&>(due).watched;
    stalled.engine_->end_if_stalled(stalled);
  };
  where().start(alarm);
}

void engine::end_if_stalled(transfer& running) noexcept {
  if (running.stage_ != transfer::stage::running) return;
  if (running.last_byte_ + running.stall_timeout > clock::now()) return watch(running);
  auto* who = running.waiting_;
  abort(running, CURLE_OPERATION_TIMEDOUT);
  (void)snprintf(running.error_text_.data(), running.error_text_.size(), "no byte for %lld ms",
                 static_cast<long long>(running.stall_timeout.count()));
  running.waiting_ = who;
  stepped_.add(running);
}

void engine::advance(transfer& what, transfer_step& who) {
  what.waiting_ = &who;
  what.last_byte_ = clock::now();
  if (what.stage_ == transfer::stage::idle) {
    what.engine_ = this;
    what.install();
    if (auto failure = curl_multi_add_handle(multi_, what.easy_); failure != CURLM_OK)
      throw error(errc::failed, "begin a transfer", curl_multi_strerror(failure));
    what.stage_ = transfer::stage::running;
    watch(what);
  } else if (what.stage_ == transfer::stage::paused) {
    what.stage_ = transfer::stage::running;
    watch(what);
    curl_easy_pause(what.easy_, CURLPAUSE_CONT);  // may hand over what was held back, and pause
  } else {
    stepped_.add(what);
  }
}

void engine::abort(transfer& what, CURLcode result) noexcept {
  what.waiting_ = nullptr;
  where().remove(what.stall_watch_);
  stepped_.remove(what);
  if (what.stage_ == transfer::stage::running || what.stage_ == transfer::stage::paused)
    curl_multi_remove_handle(multi_, what.easy_);
  what.stage_ = transfer::stage::over;
  what.result_ = result;
}

}  // namespace lade::io::http
