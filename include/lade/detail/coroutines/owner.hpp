// owner: closes a stage with dedicated coroutines when the generator of its items ends.

#pragma once

#include <memory>
#include <utility>

namespace lade::detail {

// Closes the stage when it is destroyed. It is created with the stage and moved into the generator
// of the items. So the stage is closed in each of these cases: it cannot be started; its generator
// is never resumed; its generator is destroyed early.
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

// For std::stop_callback: closes the stage when the next stage is stopped.
template <class Stage>
struct close_on_stop {
  Stage& stage;
  void operator()() const noexcept { stage.close(); }
};

}  // namespace lade::detail
