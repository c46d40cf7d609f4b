// One attempt at a request: it follows redirects, and ends with a response or with a failure that
// says whether to retry.

#pragma once

#include "byte_permits.hpp"
#include "checksums.hpp"
#include "failures.hpp"
#include "handles.hpp"
#include "origin.hpp"
#include "permit.hpp"
#include "ranges.hpp"
#include "transfer.hpp"

#include <lade/error.hpp>
#include <lade/io/http/client.hpp>
#include <lade/runtime.hpp>
#include <lade/semaphore.hpp>
#include <lade/sleep.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lade::io::http {

// Shared by all copies of a client.
struct client::state {
  explicit state(const client_options& options) : settings(options), handles(settings) {}

  const token_function* token_for(const origin& host) const;

  const client_settings settings;
  easy_handles handles;
  semaphore permits{settings.options.requests};
  byte_permits bytes{settings.options.bytes_in_flight};
  std::map<std::string, token_function, std::less<>> tokens;  // by host; before the first request

  // The permits of a host that has requests in flight or waiting.
  struct host_permits {
    explicit host_permits(std::size_t count) : permits(count) {}
    semaphore permits;
    std::size_t users = 0;
  };
  std::mutex mutex;
  std::map<std::string, host_permits> hosts;  // guarded by mutex
  std::set<std::string> multiplexed;  // hosts that have answered over HTTP/2; guarded by mutex

  // Whether the last object of get_part was longer than the part.
  std::atomic<bool> objects_are_long = false;

  std::atomic<std::uint64_t> requests = 0, retries = 0, failures = 0, bytes_in = 0, bytes_out = 0,
                             connections = 0, verified = 0;
};

// Owns a transfer and its handle. May be destroyed at any time, on any thread: a transfer in
// progress is then moved to its reactor's thread and ended there.
class live_transfer {
 public:
  live_transfer(std::shared_ptr<client::state> client, lade::runtime& runtime);
  live_transfer(const live_transfer&) = delete;
  ~live_transfer();

  transfer& operator*() const noexcept { return *transfer_; }
  transfer* operator->() const noexcept { return transfer_.get(); }
  advance step() noexcept { return advance(*transfer_, reactor_); }

 private:
  struct ended_elsewhere;

  std::shared_ptr<client::state> client_;
  easy_handle easy_;
  std::unique_ptr<transfer> transfer_;
  reactor_thread* reactor_ = nullptr;  // once it has started
  runtime_use use_;
};

// The part of a body that attempts have received so far, in `destination` if the caller has the
// memory, otherwise in `content`, which is allocated.
struct received {
  std::span<std::byte> destination;
  buffer content;
  std::size_t filled = 0;
  std::optional<response_head> head;        // of the bytes received; has a strong entity tag
  std::optional<object_checksum> checksum;  // of the whole object, if it is to be verified
  std::uint64_t divide_above = 0;           // a longer body is read in parts, if it can be
  std::uint64_t max_bytes = 0;              // a longer body is refused

  std::string etag() const { return head ? std::string(head->value("etag")) : std::string(); }
  std::optional<std::uint64_t> object_bytes() const noexcept {
    return head ? http::object_bytes(head->headers) : std::nullopt;
  }

  std::span<std::byte> memory() const noexcept {
    return destination.empty() ? content.bytes() : destination;
  }
  void restart() {
    content = {};
    filled = 0;
    head.reset();
    checksum.reset();
  }
};

// A response whose body was not received, because it is to be read in parts.
struct divided_object {
  std::string url;
  response_head head;
};

// Exactly one member is set.
struct attempt_result {
  std::optional<response> answer;
  std::optional<divided_object> divided;
  std::optional<failed_attempt> failure;
};

// Keeps the permits of a host alive. Must outlive the permits that are acquired from it.
class host_share {
 public:
  host_share(client::state& client, const origin& host);
  host_share(const host_share&) = delete;
  ~host_share();

  semaphore& permits() const noexcept { return host_->second.permits; }

 private:
  client::state& client_;
  std::map<std::string, client::state::host_permits>::iterator host_;
};

// The pause after attempt number `attempt`, counted from 1: the pause of client_options::retry, or
// the server's Retry-After if that is longer, but at most the longest pause. `draw`: in [0, 1).
std::chrono::nanoseconds pause_before_next(const client_options& options,
                                           const failed_attempt& failure, unsigned attempt,
                                           double draw) noexcept;

// The same with a random draw.
std::chrono::nanoseconds pause_before_next(const client_options& options,
                                           const failed_attempt& failure, unsigned attempt);

// Awaits `work`, and counts a timeout as a failure in the client's statistics.
template <class T>
task<T> count_if_late(client::state& client, task<T> work) {
  try {
    co_return co_await std::move(work);
  } catch (const error& late) {
    if (late.code() == errc::timed_out) ++client.failures;
    throw;
  }
}

// Awaits `work` for a request that began at `start`. Throws error(timed_out) naming the request
// when its deadline passes. The client must outlive the task.
template <class T>
task<T> within_deadline(client::state& client, std::chrono::steady_clock::time_point start,
                        task<T> work, std::string_view method, std::string_view url) {
  auto limit = client.settings.options.deadline;
  if (limit.count() == 0) return work;
  auto left = limit - (std::chrono::steady_clock::now() - start);
  return count_if_late(client, with_timeout(left, std::move(work), describe_request(method, url)));
}

// Throw error(invalid_argument), "<doing> <url>: ...", unless the request is a GET, or a GET of the
// whole object.
void require_get(std::string_view doing, const request& request);
void require_whole_get(std::string_view doing, const request& request);

// Adds a transfer to the client's statistics.
void count(client::state& client, const transfer& ended);

// Makes one attempt, and receives the whole body. Returns failures of servers and networks. Throws
// error(stopped), exceptions of token functions, and errors of requests that can never succeed.
// `request` and `progress` must outlive the task.
task<attempt_result> attempt(std::shared_ptr<client::state> client, const request& request,
                             received& progress);

// Makes attempts until one succeeds. Returns an answer, or a divided_object if the body is longer
// than `most` and can be read in parts.
// `into`: memory for the body, if the caller has it.
task<attempt_result> send_named(std::shared_ptr<client::state> client, const request& request,
                                std::span<std::byte> into = {},
                                std::optional<std::uint64_t> most = {});

}  // namespace lade::io::http
