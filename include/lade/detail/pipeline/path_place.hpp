// The path of a route or tee that contains a stage, and the marks of items in flight in it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace lade::detail {

class split_base;

struct path_place {
  std::shared_ptr<split_base> split;  // the route or tee
  std::size_t path;
  std::shared_ptr<const path_place> around = nullptr;  // path that contains the split; null: none
};

// The nearest path, from `inner` outwards, whose split detects standstills; null if there is none.
const path_place* watched_place(const path_place* inner) noexcept;

// Counts an item, or a child of a scope, as in flight in a path while the object lives. A split
// reports a standstill only if nothing is in flight in the path that its output waits for. So a
// mark is required for:
// - item: every item that a stage with dedicated coroutines has taken and not yet yielded
// - child: every child of a scope, since it may hold an item
//
// The holder must keep the path_place alive. Any thread.
class in_flight_mark {
 public:
  enum class kind : std::uint8_t { item, child };

  in_flight_mark() = default;
  explicit in_flight_mark(const path_place* where, kind is = kind::item) noexcept
      : where_(where ? watched_place(where) : nullptr), is_(is) {
    if (where_) enter();
  }
  in_flight_mark(in_flight_mark&& other) noexcept
      : where_(std::exchange(other.where_, nullptr)), is_(other.is_) {}
  in_flight_mark& operator=(in_flight_mark&& other) noexcept {
    std::swap(where_, other.where_);
    std::swap(is_, other.is_);
    return *this;
  }
  ~in_flight_mark() {
    if (where_) leave();
  }

 private:
  void enter() const noexcept;
  void leave() const noexcept;

  const path_place* where_ = nullptr;
  kind is_ = kind::item;
};

}  // namespace lade::detail
