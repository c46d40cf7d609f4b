// What the copies of a pipeline share.

#pragma once

#include <lade/detail/common/counted.hpp>

#include <utility>

namespace lade::detail {

// A function, or its arguments, that all copies of a stage and all runs refer to: moved here once,
// never copied, and destroyed with the last of them. Any thread, since it is const.
template <class T>
class shared_const {
 public:
  explicit shared_const(T value) : kept_(new kept(std::move(value))) {}

  const T& operator*() const noexcept { return kept_->value; }
  const T* operator->() const noexcept { return &kept_->value; }

 private:
  struct kept final : counted {
    explicit kept(T given) : value(std::move(given)) {}
    const T value;
  };

  counted_ptr<const kept> kept_;
};

}  // namespace lade::detail
