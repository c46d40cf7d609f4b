// What every stage needs for its items: to hold them, to name them, to tell hooks of them.

#pragma once

#include <lade/detail/path_place.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/hooks.hpp>
#include <lade/lineage.hpp>
#include <lade/stats.hpp>

#include <concepts>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade::detail {

// An item that a stage holds back, and where it came from.
template <class T>
struct held_item {
  held_item(T value, lineage positions) : item(std::move(value)), origin(std::move(positions)) {}
  T item;
  lineage origin;
};

// The same between coroutines of a stage: its path is not at rest as long as it waits there.
template <class T>
class underway_item : public held_item<T> {
 public:
  underway_item(T value, lineage positions, const path_place& place)
      : held_item<T>(std::move(value), std::move(positions)), mark_(place) {}

 private:
  underway mark_;
};

// The name that errors and records call an item by; none if its key cannot be told.
template <class T>
std::string name_of(const T& item) noexcept try {
  if constexpr (requires {
                  { item.key() } -> std::convertible_to<std::string>;
                })
    return item.key();
  else if constexpr (std::convertible_to<const T&, std::string>)
    return item;
  else if constexpr (std::integral<T>)
    return std::to_string(item);
  else
    return {};
} catch (...) {
  return {};
}

// The name of an item that is about to be moved. Small ones are kept themselves, and named when
// that is asked for.
template <class T>
class kept_name {
 public:
  explicit kept_name(const T& item) noexcept : kept_(keep(item)) {}
  std::string text() const noexcept { return name_of(kept_); }

 private:
  static constexpr bool is_small = std::is_trivially_copyable_v<T> && sizeof(T) <= 16;
  static auto keep(const T& item) noexcept {
    if constexpr (is_small)
      return item;
    else
      return name_of(item);
  }
  std::conditional_t<is_small, T, std::string> kept_;
};

// The call of a stage's function for an item, as hooks are told of it. One that has not been left
// when it is destroyed, because nobody wants what else it gives, is left then.
class hooked_call {
 public:
  template <class T>
  hooked_call(run_state& run, const stage_counters& stage, const T& item, const lineage& origin,
              unsigned attempt = 1) noexcept
      : run_(run), origin_(origin), attempt_(attempt) {
    if (!run.options().hooks) return;
    stage_ = stage.name();
    name_ = detail::name_of(item);
    run_.tell_hooks([this](run_hooks& hooks) { hooks.enter_item(call()); });
  }
  hooked_call(const hooked_call&) = delete;
  ~hooked_call() { leave(nullptr); }

  // With what the function has thrown, or null.
  void leave(const std::exception_ptr& failure) noexcept {
    if (!name_) return;
    run_.tell_hooks([&](run_hooks& hooks) { hooks.leave_item(call(), failure); });
    name_.reset();
  }

 private:
  item_call call() const noexcept { return {stage_, *name_, origin_, attempt_}; }

  run_state& run_;
  const lineage& origin_;
  unsigned attempt_;
  std::string_view stage_;
  std::optional<std::string> name_;  // if there are hooks, until it is left
};

// The last part of a type's name; "map" for lambdas and plain functions.
std::string short_type_name(std::string_view pretty_function, std::string_view otherwise);

template <class F>
std::string stage_name(std::string_view given, std::string_view otherwise) {
  if (!given.empty()) return std::string(given);
  if constexpr (std::is_class_v<F>)
    return short_type_name(__PRETTY_FUNCTION__, otherwise);
  else
    return std::string(otherwise);
}

}  // namespace lade::detail
