#include "credential_cache.hpp"

#include "settings.hpp"

#include <lade/error.hpp>
#include <lade/sleep.hpp>

#include <algorithm>
#include <utility>

namespace lade::io::http {

bool credential_cache::expires_soon(const s3_credentials& keys,
                                    s3_credentials::time now) const noexcept {
  return keys.expires() <= now + times_.margin;
}

credential_cache::turn credential_cache::take_turn() {
  std::lock_guard lock(mutex_);
  auto now = std::chrono::system_clock::now();
  bool is_valid = kept_ && now < kept_->expires();
  bool may_wait = is_valid && (running_ || now < next_try_);
  turn taken;
  if (is_valid && (may_wait || !expires_soon(*kept_, now))) {
    taken.use = kept_;
    return taken;
  }
  taken.is_own = !running_;
  if (!running_) running_ = std::make_shared<refresh>();
  taken.await = running_;
  return taken;
}

void credential_cache::end(refresh& own, std::optional<s3_credentials> got,
                           std::exception_ptr failure) {
  {
    std::lock_guard lock(mutex_);
    auto now = std::chrono::system_clock::now();
    running_.reset();
    next_try_ = now + times_.pause;
    if (got) {
      kept_ = got;
      kept_since_ = now;
    } else if (kept_ && now < kept_->expires()) {
      got = kept_;
    }
  }
  own.got = std::move(got);
  if (!own.got) own.failure = std::move(failure);
  own.ended.set();
}

// A stop cancels only the request that runs the refresh, not the waiting ones.
task<> credential_cache::run(std::shared_ptr<refresh> own) {
  std::optional<s3_credentials> got;
  std::exception_ptr failure;
  std::exception_ptr stop;
  try {
    got = co_await without_budget(from_());
  } catch (const error& thrown) {
    (thrown.code() == errc::stopped ? stop : failure) = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  end(*own, std::move(got), std::move(failure));
  if (stop) std::rethrow_exception(stop);
}

task<s3_credentials> credential_cache::current() {
  while (true) {
    auto now = take_turn();
    if (now.use) co_return *std::move(now.use);
    if (now.is_own)
      co_await run(now.await);
    else
      co_await now.await->ended;
    if (now.await->got) co_return *now.await->got;
    if (now.await->failure) std::rethrow_exception(now.await->failure);
  }
}

void credential_cache::expire(s3_credentials::time start) {
  std::lock_guard lock(mutex_);
  if (kept_since_ <= start) kept_.reset();
}

bool credential_cache::expire_if_old(s3_credentials::time start) {
  std::lock_guard lock(mutex_);
  if (kept_ && kept_since_ > start) return true;
  if (kept_ && !expires_soon(*kept_, std::chrono::system_clock::now())) return false;
  kept_.reset();
  return true;
}

// The time until credentials should be replaced.
std::chrono::nanoseconds credential_cache::time_until_refresh(
    const s3_credentials& keys) const noexcept {
  if (keys.expires() == s3_credentials::time::max()) return std::chrono::nanoseconds::max();
  auto left = keys.expires() - times_.margin - std::chrono::system_clock::now();
  return std::max<std::chrono::nanoseconds>(left, times_.pause);
}

task<> credential_cache::keep_fresh() {
  while (true) {
    auto pause = times_.pause;
    try {
      auto keys = co_await current();
      pause = time_until_refresh(keys);
    } catch (const error& failure) {
      if (failure.code() == errc::stopped) throw;
    } catch (...) {
      // Tries again after the pause. Requests that need credentials meanwhile report the failure.
    }
    co_await sleep(pause);
  }
}

}  // namespace lade::io::http
