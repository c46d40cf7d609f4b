// One attempt at a request: through redirects to a response, or to a failure that says whether
// another attempt is worth it.

#pragma once

#include "byte_permits.hpp"
#include "checksums.hpp"
#include "failures.hpp"
#include "handles.hpp"
#include "origin.hpp"
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

// What the copies of a client share.
struct client::state {
  explicit state(const client_options& options) : settings(options), handles(settings) {}

  const token_function* token_for(const origin& host) const;

  const client_settings settings;
  easy_handles handles;
  semaphore permits{settings.options.requests};
  byte_permits bytes{settings.options.bytes_in_flight};
  std::map<std::string, token_function, std::less<>> tokens;  // by host; before the first request

  // The permits of the hosts to which requests are running or waiting.
  struct host_permits {
    explicit host_permits(std::size_t count) : permits(count) {}
    semaphore permits;
    std::size_t users = 0;
  };
  std::mutex mutex;
  std::map<std::string, host_permits> hosts;  // guarded by mutex
  std::set<std::string> multiplexed;  // hosts that have answered over HTTP/2; guarded by mutex

  // What get_part found last: an object longer than the part.
  std::atomic<bool> objects_are_long = false;

  std::atomic<std::uint64_t> requests = 0, retries = 0, failures = 0, bytes_in = 0, bytes_out = 0,
                             connections = 0, verified = 0;
};

// A transfer with its handle. Destroyed anywhere, at any time: what has not ended is ended on its
// reactor's thread.
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
  detail::reactor* reactor_ = nullptr;  // once it has begun
  detail::runtime_use use_;
};

// What attempts have received of a body so far. `room`: where it goes, if the caller has the
// memory; otherwise it is allocated as `content`.
struct received {
  std::span<std::byte> destination;
  buffer content;
  std::size_t filled = 0;
  std::optional<response_head> head;        // with what is filled; has a strong entity tag
  std::optional<object_checksum> checksum;  // of the whole, if it is to be compared
  std::uint64_t divide_above = 0;           // a longer body is left, if it can be read in parts
  std::uint64_t max_bytes = 0;              // a longer one is refused

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

// A response whose body is to be read in parts.
struct divided_object {
  std::string url;
  response_head head;
};

// One of them.
struct attempt_result {
  std::optional<response> answer;
  std::optional<divided_object> divided;
  std::optional<failed_attempt> failure;
};

// Holds a permit that has been acquired.
class permit {
 public:
  explicit permit(semaphore& permits) noexcept : permits_(permits) {}
  permit(const permit&) = delete;
  ~permit() { permits_.release(); }

 private:
  semaphore& permits_;
};

// A share in the permits of a host. What a permit is acquired from, and must outlive it.
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

// The pause before the attempt that follows `attempt`, the first being 1: as client_options::retry
// says, but not before the time that the server asks for, and not longer than the longest pause.
// `draw` is from [0, 1).
std::chrono::nanoseconds pause_before_next(const client_options& options,
                                           const failed_attempt& failure, unsigned attempt,
                                           double draw) noexcept;

// The same by a random draw.
std::chrono::nanoseconds pause_before_next(const client_options& options,
                                           const failed_attempt& failure, unsigned attempt);

// A request that is given up because its time is over is counted as others are.
template <class T>
task<T> count_if_late(client::state& client, task<T> work) {
  try {
    co_return co_await std::move(work);
  } catch (const error& late) {
    if (late.code() == errc::timed_out) ++client.failures;
    throw;
  }
}

// Work for a request within what is left of its time, which began at `begun`; throws
// error(timed_out) that names the request when that is over. The client must outlive the task.
template <class T>
task<T> within_deadline(client::state& client, lade::detail::clock::time_point start, task<T> work,
                        std::string_view method, std::string_view url) {
  auto limit = client.settings.options.deadline;
  if (limit.count() == 0) return work;
  auto left = limit - (lade::detail::clock::now() - start);
  return count_if_late(client, with_timeout(left, std::move(work), describe_request(method, url)));
}

// Throw error(invalid_argument), "<doing> <url>: ...", for a request that is no GET, or none of the
// whole object.
void require_get(std::string_view doing, const request& request);
void require_whole_get(std::string_view doing, const request& request);

// Adds a transfer to the client's statistics.
void count(client::state& client, const transfer& ended);

// An attempt whose body is received as a whole. Throws error(stopped), what a token_function
// throws, and errors of what can never succeed.
task<attempt_result> attempt(std::shared_ptr<client::state> client, const request& request,
                             received& progress);

// Attempts until one succeeds. `into`: where the body goes, if the caller has the memory. The
// result is an answer, or, where a body longer than `most` is not wanted, what was left. Throws the
// errors of client::send but for the deadline, which is the caller's. `what` must outlive the task.
task<attempt_result> send_named(std::shared_ptr<client::state> client, const request& request,
                                std::span<std::byte> into = {},
                                std::optional<std::uint64_t> most = {});

}  // namespace lade::io::http
