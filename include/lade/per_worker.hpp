// per_worker: functions that have something of their own to work with.

#pragma once

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

// A function for map of which every worker has an instance of its own, made by `make()`:
//
//   lade::map(lade::per_worker([] { return tokenizer("model.bin"); }), {.concurrency = 8})
//
// An instance is called by one thread at a time, through a reference that is not const, so that it
// may keep what it needs from call to call. It is made when a worker begins and kept for the
// next run, with the pipeline and its copies. If it cannot be made, the items fail that its worker
// takes. Runs that work at the same time, such as epochs that follow each other, have instances of
// their own.
template <class Make>
class per_worker {
 public:
  using function = std::invoke_result_t<const Make&>;
  class lease;

  explicit per_worker(Make make) : make_(std::move(make)) {}

  // An instance that nobody else uses.
  lease borrow() const;

 private:
  struct shelf {
    std::mutex mutex;
    std::vector<std::unique_ptr<function>> unused;
    std::size_t made = 0;  // at most so many are unused
  };

  Make make_;
  std::shared_ptr<shelf> shelf_ = std::make_shared<shelf>();
};

// Gives the instance back when it ends.
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
    shelf_->unused.reserve(++shelf_->made);  // so that giving back needs no memory
  }
  return {shelf_, std::make_unique<function>(make_())};
}

}  // namespace lade
