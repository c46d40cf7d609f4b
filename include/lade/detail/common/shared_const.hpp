// shared_const: a constant object that all copies of a stage share.

#pragma once

#include <lade/detail/common/counted.hpp>

#include <utility>

namespace lade::detail {

// Owns a function of a stage, or its arguments, jointly with its copies. The object is moved in
// once and never copied. Any thread may access it, so its const members must be thread-safe.
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
