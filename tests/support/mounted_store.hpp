// A store that is mounted while an object lives, and a check of tasks that are stopped at a
// request.

#pragma once

#include <lade/error.hpp>
#include <lade/io/store.hpp>
#include <lade/runtime.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "counted_store.hpp"

namespace lade::test {

// A store whose objects are read by ranges.
class mounted_store {
 public:
  explicit mounted_store(std::string prefix) : prefix_(std::move(prefix)) {
    store_->opens_ranges = true;
    io::mount(prefix_, store_);
  }
  mounted_store(const mounted_store&) = delete;
  ~mounted_store() { io::unmount(prefix_); }

  counted_store* operator->() const noexcept { return store_.get(); }

 private:
  std::string prefix_;
  std::shared_ptr<counted_store> store_ = std::make_shared<counted_store>();
};

// Runs the task that `load` returns: once without a stop, and then once for each of its requests,
// with a stop at that request. The store still answers that request.
template <class Load>
void expect_stop_at_any_request(mounted_store& store, const Load& load) {
  runtime runs;
  store->forget_requests();
  sync_wait(runs, load());
  const auto requests = store->count();
  ASSERT_GE(requests, 1U);
  for (std::size_t at = 1; at <= requests; ++at) {
    store->forget_requests();
    std::stop_source stop;
    store->on_request = [&](std::size_t number) {
      if (number == at) stop.request_stop();
    };
    try {
      sync_wait(runs, load(), stop.get_token());
      ADD_FAILURE() << "it continues after a stop at request " << at << " of " << requests;
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::stopped) << failure.what() << ", at request " << at;
    }
  }
  store->on_request = nullptr;
}

}  // namespace lade::test
