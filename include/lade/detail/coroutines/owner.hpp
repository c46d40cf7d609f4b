// What ends a stage that works beside the generator of its items.

#pragma once

#include <memory>
#include <utility>

namespace lade::detail {

// Closes the stage when it is destroyed. Made with the stage and then moved into the generator of
// its items, so that the stage is closed whether it could not be started, its generator was never
// asked for an item, or was left.
template <class Stage>
class owner {
 public:
  explicit owner(std::shared_ptr<Stage> stage) noexcept : stage_(std::move(stage)) {}
  owner(owner&&) noexcept = default;
  template <class Derived>
  explicit owner(owner<Derived>&& other) noexcept : stage_(std::move(other.stage_)) {}
  owner& operator=(owner&&) = delete;
  ~owner() {
    if (stage_) stage_->close();
  }
  Stage* operator->() const noexcept { return stage_.get(); }
  const std::shared_ptr<Stage>& shared() const noexcept { return stage_; }

 private:
  template <class>
  friend class owner;

  std::shared_ptr<Stage> stage_;
};

// The same when the stage behind is stopped: for std::stop_callback.
template <class Stage>
struct close_on_stop {
  Stage& stage;
  void operator()() const noexcept { stage.close(); }
};

}  // namespace lade::detail
