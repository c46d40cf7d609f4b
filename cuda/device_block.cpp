#include "capture_guard.hpp"
#include "runtime_api.hpp"
#include "stream_users.hpp"

#include <lade/buffer.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/error.hpp>

#include <memory>
#include <mutex>
#include <utility>

namespace lade::cuda {

static std::shared_ptr<device_resource> share_of(device_resource& resource) {
  return std::static_pointer_cast<device_resource>(lade::share_of(resource));
}

struct device_block::state {
  state(device_resource& resource, std::size_t size, const stream& stream)
      : from(share_of(resource)), home(stream), memory(from->allocate(size, home)), bytes(size) {}
  state(const state&) = delete;
  ~state() {
    bool is_ordered = true;
    for (auto& each : users.all()) is_ordered = make_home_wait(each) && is_ordered;
    if (is_ordered) from->deallocate(memory, bytes, home);
  }

  // Makes the home stream wait for a user. If the driver refuses, this thread waits instead.
  // Returns false if that fails too: then work may still use the memory, so it is never freed.
  bool make_home_wait(const stream_users::user& user) const noexcept {
    try {
      home.wait(user.last ? *user.last : user.on.record());
      return true;
    } catch (...) {
      return wait_on_host(user);
    }
  }

  static bool wait_on_host(const stream_users::user& user) noexcept try {
    current_device current(user.on.on());
    capture_guard beside_captures;
    auto result = user.last ? api().event_synchronize(user.last->handle())
                            : api().stream_synchronize(user.on.handle());
    return result == cudaSuccess;
  } catch (...) {
    return false;
  }

  bool is_home(const stream& on) const noexcept {
    return stream_users::is_same(on, home) && !stream_users::is_of_thread(on);
  }

  std::shared_ptr<device_resource> from;
  stream home;
  void* memory;
  std::size_t bytes;
  std::mutex mutex;
  stream_users users;  // guarded by the mutex
};

device_block::device_block(device_resource& from, std::size_t bytes, const stream& home) {
  if (stream_users::is_of_thread(home))
    throw error(errc::invalid_argument, "allocate memory of a GPU",
                "a thread's default stream is another one in other threads");
  state_ = std::make_shared<state>(from, bytes, home);
}

std::span<std::byte> device_block::bytes() const noexcept {
  return {static_cast<std::byte*>(state_->memory), state_->bytes};
}

const stream& device_block::home() const noexcept { return state_->home; }

buffer device_block::slice(std::size_t offset, std::size_t bytes) const {
  return buffer(state_, this->bytes(), state_->from->where()).slice(offset, bytes);
}

void device_block::use_on(const stream& user) const {
  if (state_->is_home(user)) return;
  std::lock_guard lock(state_->mutex);
  state_->users.use_on(user);
}

void device_block::record_on(const stream& user) const {
  auto last = user.record();
  if (state_->is_home(user)) return;
  std::lock_guard lock(state_->mutex);
  state_->users.set(user, std::move(last));
}

}  // namespace lade::cuda
