// What the copies of a pipeline share.

#pragma once

#include <memory>
#include <utility>

namespace lade::detail {

// A function, or its arguments, that all copies of a stage and all runs refer to: moved here once,
// never copied, and destroyed with the last of them. Any thread, since it is const.
template <class T>
class shared_const {
 public:
  explicit shared_const(T value) : value_(std::make_shared<const T>(std::move(value))) {}

  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }

 private:
  std::shared_ptr<const T> value_;
};

}  // namespace lade::detail
