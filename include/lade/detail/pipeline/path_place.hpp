// Which path of a stage with paths another stage is in, and what it has under way there.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace lade::detail {

class split_base;

// Empty outside of the paths of stages that must know when a path has come to rest.
struct path_place {
  std::shared_ptr<split_base> split = {};
  std::size_t path = 0;
};

// Held by a stage that works beside its generators for every item that it has taken and not yet
// given, so that its path is not taken to be at rest; and for every child of a scope, which may
// have one. Whoever holds it keeps the path_place alive.
class underway {
 public:
  enum class what : std::uint8_t { item, child };

  underway() = default;
  explicit underway(const path_place& where, what is = what::item) noexcept
      : split_(where.split.get()), path_(where.path), is_(is) {
    if (split_) enter();
  }
  underway(underway&& other) noexcept
      : split_(std::exchange(other.split_, nullptr)), path_(other.path_), is_(other.is_) {}
  underway& operator=(underway&& other) noexcept {
    std::swap(split_, other.split_);
    std::swap(path_, other.path_);
    std::swap(is_, other.is_);
    return *this;
  }
  ~underway() {
    if (split_) leave();
  }

 private:
  void enter() const noexcept;
  void leave() const noexcept;

  split_base* split_ = nullptr;
  std::size_t path_ = 0;
  what is_ = what::item;
};

}  // namespace lade::detail
