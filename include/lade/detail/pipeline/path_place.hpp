// The path of a route or tee that a stage is in, and what the stage has in flight there.

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
  std::shared_ptr<const path_place> around = nullptr;  // the path that the route is in itself
};

// The nearest path of a stage that must know when a path has come to rest; null if there is none.
const path_place* watched_place(const path_place* inner) noexcept;

// Held by a stage that works beside its generators for every item that it has taken and not yet
// yielded, so that its path is not taken to be at rest; and for every child of a scope, which may
// have one. Whoever holds it keeps the path_place alive.
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
