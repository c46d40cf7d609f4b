// One request and its response: an easy handle of libcurl, driven by the engine of a reactor.

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

// The status line and the headers of a response.
struct response_head {
  int status = 0;
  header_list headers;
  bool is_complete = false;  // the empty line after the headers was received

  std::string_view value(std::string_view name) const noexcept {
    return header_value(headers, name);
  }
  std::optional<std::uint64_t> length() const noexcept;  // Content-Length: of the encoded body
};

// One coroutine advances a transfer step by step:
//
//   co_await advance(transfer, reactor);   // until it is over, or `destination` is full
//
// The body is written to `destination`. If that is too small for the next piece, the transfer
// pauses and its step ends. So the consumer sets the pace of the connection.
//
//   idle --advance--> running --destination full--> paused --advance--> running --end--> over
//
// All steps run on the thread of one reactor. A transfer may be created and destroyed on any
// thread. One that is running or paused must be ended on the reactor's thread before: see
// live_transfer.
class transfer {
 public:
  enum class stage : std::uint8_t { idle, running, paused, over };

  // The largest piece that libcurl delivers at a time.
  static constexpr std::size_t piece_bytes = std::size_t{128} << 10;

  static constexpr std::size_t most_refused = std::size_t{1} << 20;

  // Limit of the headers of all responses to a request, trailers included.
  static constexpr std::size_t most_header_bytes = std::size_t{512} << 10;

  // `handle`: has all options set but the callbacks, which install() sets.
  explicit transfer(CURL* handle) noexcept : easy_(handle) {}

  // The body of the request, and how many of its bytes libcurl has read.
  buffer outgoing;
  std::size_t sent = 0;

  // Lists that the handle refers to until the transfer is over.
  curl_list headers;
  curl_list addresses;

  // If `keeps_authorizations`: the lines Authorization and Proxy-Authorization that were sent,
  // among them lines that libcurl has added. `proxy_urls`: the proxies that it may use.
  bool keeps_authorizations = false;
  std::string authorizations;
  std::span<const std::string> proxy_urls;

  response_head head;
  std::span<std::byte> destination;  // where the next bytes of the body go
  std::size_t filled = 0;            // bytes received in `destination`
  std::size_t needed = 0;            // when paused: size of the piece that did not fit
  std::string refusal;               // the beginning of the body of a status of 300 or more
  std::size_t refused_bytes = 0;     // size of that body; the transfer ends after 1 MiB

  // The range that a partial response must have. Any other response ends the transfer, and sets
  // `misfits`.
  std::optional<byte_range> expected = {};
  bool misfits = false;

  // A body that is longer and can be read by ranges ends the transfer, and sets `is_divided`.
  std::uint64_t max_undivided_bytes = std::numeric_limits<std::uint64_t>::max();
  bool is_divided = false;

  // How long it may run without receiving a byte. Then it ends with CURLE_OPERATION_TIMEDOUT.
  std::chrono::milliseconds stall_timeout{0};

  // How long idle connections are kept after the engine's last transfer, if this is the last.
  std::chrono::seconds idle_timeout{60};

  // If set: when the body starts, allocates `content` of the body's length in this context.
  // Conditions: the length is known and at most `most_bytes`, and the memory is available at once.
  const context* allocates_in = nullptr;
  std::size_t most_bytes = 0;
  buffer content;

  // If set: when the body starts, `memory` becomes `destination`, if the share acquires permits for
  // its bytes at once.
  byte_share* share = nullptr;
  std::span<std::byte> memory;

  // The stage at the end of the last step.
  stage at() const noexcept { return seen_; }
  CURLcode result() const noexcept { return result_; }
  bool succeeded() const noexcept { return result_ == CURLE_OK || refused_bytes > most_refused; }
  CURL* handle() const noexcept { return easy_; }
  std::string_view reason() const noexcept { return error_text_.data(); }  // libcurl's message

 private:
  friend class engine;
  friend class transfer_list;
  friend class transfer_step;

  std::size_t receive_body(const char* data, std::size_t bytes);
  // Ends a transfer that stalls while it runs.
  class watch final : public reactor_timer {
   public:
    explicit watch(transfer& watched) noexcept : watched_(watched) {}

   private:
    void expired() noexcept override { watched_.stalled(); }

    transfer& watched_;
  };

  void stalled() noexcept;
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
  transfer_step* waiting_ = nullptr;  // the awaiter of the step in progress
  stage seen_ = stage::idle;
  watch stall_watch_{*this};
  std::chrono::steady_clock::time_point last_byte_;
  std::size_t header_bytes_ = 0;
  bool body_started_ = false;  // the body has started
  bool listed_ = false;        // is in engine::stepped_
  transfer* previous_ = nullptr;
  transfer* next_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

// An intrusive list of transfers, in the order in which they were added.
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

// Awaits one step of a transfer. If the caller is cancelled, the transfer ends with the result
// CURLE_ABORTED_BY_CALLBACK.
class advance {
 public:
  explicit advance(transfer& active, reactor_thread*& reactor) noexcept
      : transfer_(active), reactor_(reactor) {}
  transfer_step operator co_await() const noexcept;

 private:
  transfer& transfer_;
  reactor_thread*& reactor_;
};

class transfer_step final : public service_await<engine> {
 public:
  transfer_step(transfer& active, reactor_thread*& reactor) noexcept
      : service_await(reactor), transfer_(active), kept_(reactor) {}

  void await_resume() const;  // rethrows an error of engine::advance
  void ended() noexcept;

 private:
  void begin() noexcept override;
  void end_early() noexcept override;

  transfer& transfer_;
  reactor_thread*& kept_;  // the transfer's reactor, once it has started
  std::exception_ptr failure_;
};

inline transfer_step advance::operator co_await() const noexcept { return {transfer_, reactor_}; }

// A multi handle of libcurl on a reactor, with its connection pool. Reactor's thread only.
//
// libcurl's callbacks must not call libcurl. So they only record socket and timer changes; act()
// calls libcurl when the reactor reports an event. collect() moves the transfers that have ended to
// `stepped_`, and end_turn() resumes their coroutines.
class engine final : public reactor_service {
 public:
  explicit engine(reactor_thread& reactor);
  ~engine() override;

  // Runs the transfer until its step ends; then calls step.ended() at the end of the turn.
  void advance(transfer& active, transfer_step& step);

  // Ends a transfer without calling its step.
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

  // The least capacity of the connection pool. It grows to the number of concurrent transfers.
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

  class idle_watch final : public reactor_timer {
   public:
    explicit idle_watch(engine& watched) noexcept : watched_(watched) {}

   private:
    void expired() noexcept override { watched_.close_if_idle(); }

    engine& watched_;
  };

  connection_list connections_;
  CURLM* multi_;
  std::size_t attached_ = 0;           // transfers in the multi handle
  std::size_t kept_ = least_kept;      // capacity of the connection pool
  clock::time_point idle_since_ = {};  // while no transfer is attached
  std::chrono::seconds idle_timeout_{60};
  idle_watch idle_watch_{*this};
  bool due_now_ = false;   // libcurl's timer has expired
  int reading_ = -1;       // the descriptor being read, while more is expected from it
  transfer_list stepped_;  // transfers whose steps have ended, and are resumed by end_turn()
};

}  // namespace lade::io::http
