// One request and what has come of its response: libcurl's easy handle, driven by the engine of a
// reactor.

#pragma once

#include "byte_permits.hpp"
#include "connections.hpp"

#include <lade/buffer.hpp>
#include <lade/context.hpp>
#include <lade/io/http/client.hpp>
#include <lade/reactor_service.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <curl/curl.h>

namespace lade::io::http {

class engine;
class transfer_step;

struct free_curl_list {
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using curl_list = std::unique_ptr<curl_slist, free_curl_list>;

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;
std::string_view without_blanks(std::string_view text) noexcept;

// The value of a header, whatever the case of its name; empty if there is none.
std::string_view header_value(const header_list& headers, std::string_view name) noexcept;

// The first line and the headers of a response, and how long its body is if that was said.
struct response_head {
  int status = 0;
  header_list headers;
  bool is_complete = false;  // the empty line after the headers has come

  std::string_view value(std::string_view name) const noexcept {
    return header_value(headers, name);
  }
  std::optional<std::uint64_t> length() const noexcept;  // of the body, as it is transferred
};

// A transfer is advanced step by step, by one coroutine:
//
//   co_await advance(transfer);      until it is over, or has no room for the next bytes
//
// The body goes to where `room` says. Where that is too small for the next piece, the transfer is
// paused, and its step ends: so the pace of step advances it is the pace of the connection.
//
//   idle --advance--> running --no room--> paused --advance--> running --end--> over
//
// All of it but making and destroying happens on the thread of one reactor. Made and destroyed
// anywhere: what is still running or paused then is ended on that thread, where its handle lives
// on.
class transfer {
 public:
  enum class stage : std::uint8_t { idle, running, paused, over };

  // What libcurl hands over at most at a time.
  static constexpr std::size_t piece_bytes = std::size_t{128} << 10;

  static constexpr std::size_t most_refused = std::size_t{1} << 20;

  // Of all responses to a request, with what follows a body. libcurl limits what precedes it.
  static constexpr std::size_t most_header_bytes = std::size_t{512} << 10;

  // `handle` has all options but those that belong to the object itself.
  explicit transfer(CURL* handle) noexcept : easy_(handle) {}

  // Bytes of a body that is sent, and those of them that libcurl has taken.
  buffer outgoing;
  std::size_t sent = 0;

  // Headers that the handle refers to until the end.
  curl_list headers;
  curl_list addresses;

  // The lines Authorization and Proxy-Authorization that were sent, if it is told to keep them:
  // what libcurl has added itself. The proxies that it may use.
  bool keeps_authorizations = false;
  std::string authorizations;
  std::span<const std::string> proxy_urls;

  response_head head;
  std::span<std::byte> destination;  // where the next bytes of the body go
  std::size_t filled = 0;            // bytes of `room` that have come
  std::size_t needed = 0;            // when paused: bytes of the piece that had no room
  std::string refusal;               // the beginning of the body of a status of 300 or more
  std::size_t refused_bytes = 0;     // of that body; after a MiB the transfer ends

  // The response to a request for a part is only taken if it is that part. Otherwise the transfer
  // ends, and `misfits`.
  std::optional<byte_range> expected = {};
  bool misfits = false;

  // A longer body of an entity that can be read in parts is not taken; then `is_divided`.
  std::uint64_t max_undivided_bytes = std::numeric_limits<std::uint64_t>::max();
  bool is_divided = false;

  // How long it may run without a byte; then it ends with CURLE_OPERATION_TIMEDOUT.
  std::chrono::milliseconds stall_timeout{0};

  // How long connections without a transfer are kept once this one was the last.
  std::chrono::seconds idle_timeout{60};

  // When the body begins, it takes memory of its length there, if that is known and need not be
  // waited for, as `content`.
  const context* allocates_in = nullptr;
  std::size_t most_bytes = 0;  // that it allocates so
  buffer content;

  // If set: `memory` becomes `room` when the body begins, if so many bytes may be in flight.
  byte_share* share = nullptr;
  std::span<std::byte> memory;

  // Where it was when the last step ended.
  stage at() const noexcept { return seen_; }
  CURLcode result() const noexcept { return result_; }
  bool succeeded() const noexcept { return result_ == CURLE_OK || refused_bytes > most_refused; }
  CURL* handle() const noexcept { return easy_; }
  std::string_view reason() const noexcept { return error_text_.data(); }  // what libcurl says

 private:
  friend class engine;
  friend class transfer_list;
  friend class transfer_step;

  std::size_t receive_body(const char* data, std::size_t bytes);
  // While it runs.
  struct watch : detail::timer {
    transfer* watched = nullptr;
  };

  bool should_be_divided() const noexcept;
  void begin_body();
  void require_good_head() noexcept;
  std::size_t receive_header(std::string_view line);
  std::size_t supply_body(char* into, std::size_t bytes) noexcept;
  void keep_authorizations(std::string_view sent_headers);
  void install();

  CURL* easy_;
  engine* engine_ = nullptr;
  stage stage_ = stage::idle;
  CURLcode result_ = CURLE_OK;
  transfer_step* waiting_ = nullptr;  // the coroutine that has begun this step
  stage seen_ = stage::idle;
  watch stall_watch_;
  std::chrono::steady_clock::time_point last_byte_;
  std::size_t header_bytes_ = 0;
  bool body_started_ = false;  // its body
  bool listed_ = false;        // in the engine's list of steps that have ended
  transfer* previous_ = nullptr;
  transfer* next_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

// Transfers in the order in which they were added, linked through themselves, each once.
class transfer_list {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void add(transfer& last) noexcept;
  void remove(transfer& member) noexcept;
  transfer& pop() noexcept;

 private:
  transfer* first_ = nullptr;
  transfer* last_ = nullptr;
};

// Awaits a step of a transfer. When the caller is asked to stop, the transfer is ended, with the
// result CURLE_ABORTED_BY_CALLBACK.
class advance {
 public:
  explicit advance(transfer& active, detail::reactor*& reactor) noexcept
      : transfer_(active), reactor_(reactor) {}
  transfer_step operator co_await() const noexcept;

 private:
  transfer& transfer_;
  detail::reactor*& reactor_;
};

class transfer_step final : public service_await<engine> {
 public:
  transfer_step(transfer& active, detail::reactor*& reactor) noexcept
      : service_await(reactor), transfer_(active), kept_(reactor) {}

  void await_resume() const;  // throws what beginning has thrown
  void ended() noexcept;

 private:
  void begin() noexcept override;
  void end_early() noexcept override;

  transfer& transfer_;
  detail::reactor*& kept_;  // the transfer's reactor, once it has begun
  std::exception_ptr failure_;
};

inline transfer_step advance::operator co_await() const noexcept { return {transfer_, reactor_}; }

// libcurl's multi handle on a reactor, with the connections that it keeps.
class engine final : public reactor_service {
 public:
  explicit engine(detail::reactor& reactor);
  ~engine() override;

  // Runs the transfer until its step ends, and then calls step.ended().
  void advance(transfer& active, transfer_step& step);

  // Ends a transfer; calls nobody.
  void abort(transfer& active, CURLcode result = CURLE_ABORTED_BY_CALLBACK) noexcept;

 private:
  friend class transfer;

  void ready(int fd, unsigned events) noexcept override;
  void expired() noexcept override;
  void end_turn() noexcept override;

  static int on_socket(CURL*, curl_socket_t fd, int interest, void* self, void*) noexcept;
  static int on_timer(CURLM*, long milliseconds, void* self) noexcept;
  static curl_socket_t on_open(void* self, curlsocktype, curl_sockaddr* to) noexcept;
  static int on_close(void* self, curl_socket_t fd) noexcept;

  // Connections that are kept, or more where more were needed side by side.
  static constexpr std::size_t least_kept = 128;

  static CURLM* open_multi(engine& self) noexcept;
  void act(int fd, int events) noexcept;
  void collect() noexcept;
  void attach(transfer& active);
  void detach(transfer& active) noexcept;
  void close_if_idle() noexcept;
  void watch(transfer& running) noexcept;
  void end_if_stalled(transfer& running) noexcept;
  void end_if_silent(const transfer& timed_out) noexcept;

  struct idle_watch : detail::timer {
    engine* watched = nullptr;
  };

  connection_list connections_;
  CURLM* multi_;
  std::size_t attached_ = 0;  // transfers in it
  std::size_t kept_ = least_kept;
  clock::time_point idle_since_ = {};  // while no transfer is attached
  std::chrono::seconds idle_timeout_{60};
  idle_watch idle_watch_;
  bool due_now_ = false;   // libcurl's timer has run out already
  int reading_ = -1;       // the descriptor that is read, as long as more is awaited from it
  transfer_list stepped_;  // whose steps have ended, to be told at the end of the turn
};

}  // namespace lade::io::http
