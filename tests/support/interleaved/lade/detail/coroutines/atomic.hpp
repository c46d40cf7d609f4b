// Stands in for the header of this name in include/: an atomic variable whose accesses are
// schedule points of the tests that ask for it. All accesses are sequentially consistent.

#pragma once

#include "../../../../interleavings.hpp"

#include <atomic>
#include <utility>

namespace lade::detail {

template <class T>
class atomic {
 public:
  atomic(T value) noexcept : value_(value) {}
  atomic(const atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const {
    test::interleaving::reach_atomic();
    return value_;
  }
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    test::interleaving::reach_atomic();
    value_ = value;
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    test::interleaving::reach_atomic();
    return std::exchange(value_, value);
  }
  operator T() const { return load(); }
  T operator=(T value) {
    store(value);
    return value;
  }

 private:
  T value_;
};

}  // namespace lade::detail
