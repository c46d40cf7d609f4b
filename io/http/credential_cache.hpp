// Credentials that are kept until shortly before they expire.

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

// When credentials are replaced. Tests have other times than stores.
struct credential_times {
  std::chrono::nanoseconds margin = std::chrono::minutes(5);  // before they expire
  std::chrono::nanoseconds pause = std::chrono::seconds(10);  // between two calls, at least
};

// Shared by all requests of a store. Any thread. Three states, by the time:
//
//   fresh    expire later than the margin: used
//   old      still valid: one request gets others, the rest uses them; so does that request if it
//            fails. Not more often than the pause says.
//   expired  or none: one request gets others, the rest waits for it and shares its result
//
// A refresh that is stopped with its request is begun again by one of those who wait.
class credential_cache {
 public:
  explicit credential_cache(s3_credentials_function from, credential_times times = {})
      : from_(std::move(from)), times_(times) {}

  // Valid credentials. Throws what the function throws. The cache must outlive the task.
  task<s3_credentials> current();

  // For a server that says that those of an attempt have expired, which began then: the next one
  // gets others, unless there are newer ones already.
  void expire(s3_credentials::time start);

  // The same for a server that refuses an attempt and does not say why. Returns whether another is
  // worth it: there are newer ones already, or these are so old that the next one gets others.
  bool expire_if_old(s3_credentials::time start);

  // Gets new credentials each time before the last ones expire, until it is stopped: so no request
  // waits for them. Background work. The cache must outlive the task.
  task<> keep_fresh();

 private:
  struct refresh {
    event ended;
    std::optional<s3_credentials> got;  // set before `ended`, as is `failure`
    std::exception_ptr failure;         // null also if it was stopped
  };

  // What a request is to do: use the credentials, or await the refresh, which may be its own.
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
  std::optional<s3_credentials> kept_;  // guarded by mutex_, as all that follows
  s3_credentials::time kept_since_;
  s3_credentials::time next_try_;     // while old ones are valid
  std::shared_ptr<refresh> running_;  // null: none
};

}  // namespace lade::io::http
