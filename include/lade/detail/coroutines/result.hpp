// result<T>: the outcome of a coroutine: a value, a reference, nothing, or an exception.

#pragma once

#include <exception>
#include <memory>
#include <utility>

namespace lade::detail {

// A union instead of a std::variant, which takes GCC a hundred functions for each type of result.
template <class T>
class result {
 public:
  result() noexcept {}
  result(const result&) = delete;
  ~result() { clear(); }

  // At most once, and not after set_exception().
  template <class U>
  void return_value(U&& value) {
    std::construct_at(std::addressof(value_), std::forward<U>(value));
    holds_ = content::value;
  }

  // May follow return_value(): the destructor of a local variable has thrown.
  void set_exception(std::exception_ptr failure) noexcept {
    clear();
    std::construct_at(&failure_, std::move(failure));
    holds_ = content::failure;
  }
  void unhandled_exception() noexcept { set_exception(std::current_exception()); }

  T take() {
    if (holds_ == content::failure) std::rethrow_exception(std::move(failure_));
    return std::move(value_);
  }

 private:
  enum class content : unsigned char { nothing, value, failure };

  void clear() noexcept {
    if (holds_ == content::value) std::destroy_at(std::addressof(value_));
    if (holds_ == content::failure) std::destroy_at(&failure_);
    holds_ = content::nothing;
  }

  union {
    T value_;
    std::exception_ptr failure_;
  };
  content holds_ = content::nothing;
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
