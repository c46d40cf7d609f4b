// What every stage needs for its items: to hold them, to name them, to tell hooks of them.

#pragma once

#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/hooks.hpp>
#include <lade/lineage.hpp>
#include <lade/stats.hpp>
#include <lade/url.hpp>

#include <any>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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
class in_flight_item : public held_item<T> {
 public:
  in_flight_item(T value, lineage positions, const path_place* place)
      : held_item<T>(std::move(value), std::move(positions)), mark_(place) {}

 private:
  in_flight_mark mark_;
};

// The key of an item; none if it has none or it cannot be told.
template <class T>
std::string key_of(const T& item) noexcept try {
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

// The name that errors and records call an item by: its key, without secrets that are in a URL.
template <class T>
std::string name_of(const T& item) noexcept try {
  return without_secrets(key_of(item));
} catch (...) {
  return {};
}

// The name of the item that a stage works on, which is about to be moved. Used for one item after
// the other: the memory of a key is that of the keys before it. Small items are kept themselves,
// and named when text() is called.
template <class T>
class kept_name {
 public:
  void keep(const T& item) noexcept try {
    if constexpr (is_small)
      kept_.emplace(item);
    else if constexpr (requires {
                         { item.key() } -> std::convertible_to<std::string_view>;
                       })
      kept_.assign(std::string_view(item.key()));
    else if constexpr (std::convertible_to<const T&, std::string_view>)
      kept_.assign(std::string_view(item));
    else
      kept_ = name_of(item);
  } catch (...) {
    kept_ = {};
  }

  // Of the last item that was kept; empty if its key cannot be told.
  std::string text() const noexcept try {
    if constexpr (is_small)
      return kept_ ? name_of(*kept_) : std::string();
    else
      return without_secrets(kept_);
  } catch (...) {
    return {};
  }

 private:
  static constexpr bool is_small = std::is_trivially_copyable_v<T> && sizeof(T) <= 16;

  std::conditional_t<is_small, std::optional<T>, std::string> kept_;
};

// Does what a stage itself does with an item, such as a copy, and names both in what that throws.
template <class T, class F>
auto handle(const T& item, const lineage& origin, const open_context& run, stage_counters& counters,
            F work) {
  try {
    return work();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, name_of(item), origin));
  }
}

// What hooks see of an item. Stages overload it for items that stand for others.
template <class T>
item_view view_of(const T& item) noexcept {
  return item_view(item);
}

// The same of a result, if there is one.
template <class T>
item_view view_of_result(const std::optional<T>& result) noexcept {
  return result ? view_of(*result) : item_view();
}

// The hooks around one call of a stage's function for an item. One thread at a time. Hooks that
// have not been left when it is destroyed, because nobody wants what else the item gives, are left
// then.
class hooked_call {
 public:
  hooked_call(run_state& run, const stage_counters& stage, const lineage& origin,
              unsigned attempt = 1) noexcept
      : run_(run), stage_(stage), origin_(origin), attempt_(attempt) {}
  hooked_call(const hooked_call&) = delete;
  ~hooked_call() {
    if (inside_) leave_early();
  }

  // Whether there is anything to enter.
  bool has_hooks() const noexcept { return !run_.options().hooks.all().empty(); }

  // Throws what a hook throws. Then those before it are inside, and the call must not be made.
  void enter(std::string item, const item_view& argument);

  // `thrown`: the exception of the function or of enter(), or null. Leaves the hooks that are
  // inside. Returns the failure of the call: `thrown`, else the first exception of a hook, or null.
  std::exception_ptr end(const std::exception_ptr& thrown, const item_view& result) noexcept {
    return inside_ ? leave_all(thrown, result) : thrown;
  }

  // The function has returned. Throws the failure of the call.
  void leave(const item_view& result) {
    if (!inside_) return;
    if (auto failure = leave_all(nullptr, result)) std::rethrow_exception(failure);
  }

 private:
  // Those that have been entered: as many as there are locals.
  struct entered {
    std::string stage;
    std::string item;
    std::vector<std::any> locals;
  };

  std::exception_ptr leave_all(std::exception_ptr failure, const item_view& result) noexcept;
  void leave_early() noexcept;

  run_state& run_;
  const stage_counters& stage_;
  const lineage& origin_;
  unsigned attempt_;
  std::unique_ptr<entered> inside_;
};

// How many bytes an item holds, as far as its type tells: a buffer, a sample, a tensor, a batch, or
// what has bytes() itself.
template <class T>
std::uint64_t content_bytes(const T& item) {
  if constexpr (requires {
                  { item.content_bytes() } -> std::convertible_to<std::size_t>;
                })
    return item.content_bytes();
  else if constexpr (requires {
                       { item.bytes() } -> std::convertible_to<std::size_t>;
                     })
    return item.bytes();
  else if constexpr (requires { item.bytes().size_bytes(); })
    return item.bytes().size_bytes();
  else if constexpr (requires { item.data().bytes().size_bytes(); })
    return item.data().bytes().size_bytes();
  else if constexpr (requires { item.spec().bytes(); })
    return item.spec().bytes();
  else if constexpr (requires { item.tensor().spec().bytes(); })
    return item.tensor().spec().bytes();
  else
    return 0;
}

// An item goes to the next stage. One thread at a time.
template <class T>
void count_out(stage_counters& counters, const T& item) {
  increment(counters.out);
  if (auto bytes = content_bytes(item)) increment(counters.bytes, bytes);
}

// The last part of a type's name; `otherwise` for lambdas.
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
