// What ends a stage that works beside the generator of its items.

#pragma once

#include <memory>
#include <utility>

namespace lade::detail {

// Closes the stage when the generator that holds this is destroyed, also one that was never asked
// for an item.
template <class Stage>
class owner {
 public:
  explicit owner(std::shared_ptr<Stage> stage) noexcept : stage_(std::move(stage)) {}
  owner(owner&&) noexcept = default;
  owner& operator=(owner&&) = delete;
  ~owner() {
    if (stage_) stage_->close();
  }
  Stage* operator->() const noexcept { return stage_.get(); }

 private:
  std::shared_ptr<Stage> stage_;
};

// The same when the stage behind is stopped: for std::stop_callback.
template <class Stage>
struct close_on_stop {
  Stage& stage;
  void operator()() const noexcept { stage.close(); }
};

}  // namespace lade::detail
