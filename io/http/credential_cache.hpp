// Caches credentials until shortly before they expire.

#pragma once

#include <lade/event.hpp>
#include <lade/io/http/s3_credentials.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

namespace lade::io::http {

// The times of replacing credentials. Tests set shorter ones.
struct credential_times {
  std::chrono::nanoseconds margin = std::chrono::minutes(5);  // before the expiry
  std::chrono::nanoseconds pause = std::chrono::seconds(10);  // minimum between two calls
};

// Shared by all requests of a store. Thread-safe. There are three states, by the time:
//
//   fresh    The expiry is later than the margin. Requests use the credentials.
//   old      Still valid. One request refreshes them, at most once per pause. Other requests use
//            the old ones; so does the refreshing request if its refresh fails.
//   expired  Or there are none. One request refreshes them; the others wait and share its result.
//
// If the request that refreshes is cancelled, one of the waiting requests starts again.
class credential_cache {
 public:
  explicit credential_cache(s3_credentials_function from, credential_times times = {})
      : from_(std::move(from)), times_(times) {}

  // Returns valid credentials. Throws the exceptions of the function. The cache must outlive the
  // task.
  task<s3_credentials> current();

  // Call if a server reports that the credentials of an attempt, which started at `start`, have
  // expired. The next request refreshes them, unless there are newer ones.
  void expire(s3_credentials::time start);

  // The same for a server that refuses an attempt without a reason. Returns whether to retry: there
  // are newer credentials, or these are so old that the next request refreshes them.
  bool expire_if_old(s3_credentials::time start);

  // Background work: refreshes the credentials before they expire, until it is cancelled. So no
  // request waits for them. The cache must outlive the task.
  task<> keep_fresh();

 private:
  struct refresh {
    event ended;
    std::optional<s3_credentials> got;  // set before `ended`, as is `failure`
    std::exception_ptr failure;         // null also if it was stopped
  };

  // The next step of a request: use the credentials, or await a refresh, its own or another's.
  struct turn {
    std::optional<s3_credentials> use;
    std::shared_ptr<refresh> await;
    bool is_own = false;
  };

  bool expires_soon(const s3_credentials& keys, s3_credentials::time now) const noexcept;
  std::chrono::nanoseconds time_until_refresh(const s3_credentials& keys) const noexcept;
  turn take_turn();
  task<> run(std::shared_ptr<refresh> own);
  void end(refresh& own, std::optional<s3_credentials> got, std::exception_ptr failure);

  s3_credentials_function from_;
  credential_times times_;
  std::mutex mutex_;
  std::optional<s3_credentials> kept_;  // guarded by mutex_, like the members below
  s3_credentials::time kept_since_;
  s3_credentials::time next_try_;     // of the next refresh while old ones are valid
  std::shared_ptr<refresh> running_;  // null if there is none
};

}  // namespace lade::io::http
