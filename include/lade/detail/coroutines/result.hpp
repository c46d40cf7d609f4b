// result<T>: the outcome of a coroutine: a value, a reference, nothing, or an exception.

#pragma once

#include <exception>
#include <memory>
#include <utility>
#include <variant>

namespace lade::detail {

template <class T>
class result {
 public:
  template <class U>
  void return_value(U&& value) {
    outcome_.template emplace<1>(std::forward<U>(value));
  }
  void unhandled_exception() noexcept { set_exception(std::current_exception()); }
  void set_exception(std::exception_ptr failure) noexcept {
    outcome_.template emplace<2>(std::move(failure));
  }

  T take() {
    if (auto* failure = std::get_if<2>(&outcome_)) std::rethrow_exception(std::move(*failure));
    return std::move(std::get<1>(outcome_));
  }

 private:
  std::variant<std::monostate, T, std::exception_ptr> outcome_;
};

template <class T>
class result<T&> : private result<T*> {
 public:
  void return_value(T& value) noexcept { result<T*>::return_value(std::addressof(value)); }
  using result<T*>::unhandled_exception;
  using result<T*>::set_exception;
  T& take() { return *result<T*>::take(); }
};

template <>
class result<void> {
 public:
  void return_void() noexcept {}
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }
  void set_exception(std::exception_ptr failure) noexcept { failure_ = std::move(failure); }
  void take() {
    if (failure_) std::rethrow_exception(std::move(failure_));
  }

 private:
  std::exception_ptr failure_;
};

}  // namespace lade::detail
