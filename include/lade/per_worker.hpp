// per_worker: one instance of a function per worker, for functions that are not thread-safe.

#pragma once

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

// A function for map. Every worker uses a separate instance, which `make()` returns:
//
//   lade::map(lade::per_worker([] { return tokenizer("model.bin"); }), {.concurrency = 8})
//
// Thread: one thread at a time calls an instance, through a reference that is not const. So an
// instance may keep data from call to call.
//
// Ownership: a worker borrows an instance when it starts, and calls `make()` if none is unused. The
// pipeline and its copies own the instances and keep them for later runs. Concurrent runs, such as
// epochs that overlap, use different instances.
//
// Errors: if `make()` throws, all items that the worker takes fail. The failure ends the run,
// whatever `on_error` says.
template <class Make>
class per_worker {
 public:
  using function = std::invoke_result_t<const Make&>;
  class lease;

  explicit per_worker(Make make) : make_(std::move(make)) {}

  // Returns an unused instance, or calls `make()`. Any thread. Throws the exceptions of `make()`.
  lease borrow() const;

 private:
  struct shelf {
    std::mutex mutex;
    std::vector<std::unique_ptr<function>> unused;
    std::size_t made = 0;  // number of calls of `make()`, the maximum size of `unused`
  };

  Make make_;
  std::shared_ptr<shelf> shelf_ = std::make_shared<shelf>();
};

// A borrowed instance. The destructor returns the instance.
template <class Make>
class per_worker<Make>::lease {
 public:
  lease(std::shared_ptr<shelf> from, std::unique_ptr<function> instance) noexcept
      : shelf_(std::move(from)), instance_(std::move(instance)) {}
  lease(lease&&) noexcept = default;
  ~lease() {
    if (!instance_) return;
    std::lock_guard lock(shelf_->mutex);
    shelf_->unused.push_back(std::move(instance_));
  }

  function& operator*() const noexcept { return *instance_; }

 private:
  std::shared_ptr<shelf> shelf_;
  std::unique_ptr<function> instance_;
};

template <class Make>
typename per_worker<Make>::lease per_worker<Make>::borrow() const {
  {
    std::lock_guard lock(shelf_->mutex);
    if (!shelf_->unused.empty()) {
      auto instance = std::move(shelf_->unused.back());
      shelf_->unused.pop_back();
      return {shelf_, std::move(instance)};
    }
    shelf_->unused.reserve(++shelf_->made);  // so that ~lease() allocates nothing
  }
  return {shelf_, std::make_unique<function>(make_())};
}

}  // namespace lade
