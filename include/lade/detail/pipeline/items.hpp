// Helpers of stages for their items: holding, naming and counting them, and calling hooks.

#pragma once

#include <lade/detail/data/item_bytes.hpp>
#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/path_place.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/hooks.hpp>
#include <lade/lineage.hpp>
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

// An item that a stage holds, with its lineage.
template <class T>
struct held_item {
  held_item(T value, lineage positions) : item(std::move(value)), origin(std::move(positions)) {}
  T item;
  lineage origin;
};

// The same for an item between two coroutines of a stage: it is in flight in the path of the stage.
template <class T>
class in_flight_item : public held_item<T> {
 public:
  in_flight_item(T value, lineage positions, const path_place* place)
      : held_item<T>(std::move(value), std::move(positions)), mark_(place) {}

 private:
  in_flight_mark mark_;
};

// The key of an item; empty if its type has none, or if obtaining it throws.
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

// The name of an item in errors and records: its key, without the secrets of a URL.
template <class T>
std::string name_of(const T& item) noexcept try {
  return without_secrets(key_of(item));
} catch (...) {
  return {};
}

// The name of the item that a stage is about to move from. Reused for one item after the other, so
// that keys reuse their memory. A small item is copied, and named when text() is called.
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

  // The name of the last item; empty if it has none, or if obtaining it throws.
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

// Returns `work()`, an operation of the stage itself, such as a copy of the item. Adds the names of
// stage and item to an exception that it throws, which ends the run.
template <class T, class F>
auto handle(const T& item, const lineage& origin, const open_context& run, stage_counters& counters,
            F work) {
  try {
    return work();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, name_of(item), origin));
  }
}

// Frees what an item holds, for a stage that has used the item without moving from it and may now
// wait. The object itself remains in the stage before until the next item is requested. Does
// nothing if the move may throw.
template <class T>
void release_item(T& item) noexcept {
  if constexpr (std::is_nothrow_move_constructible_v<T> && !std::is_trivially_destructible_v<T>) {
    [[maybe_unused]] T released(std::move(item));
  }
}

// The view of an item for hooks. Stages overload it for internal types that wrap an item.
template <class T>
item_view view_of(const T& item) noexcept {
  return item_view(item);
}

// The view of a result; empty if there is none.
template <class T>
item_view view_of_result(const std::optional<T>& result) noexcept {
  return result ? view_of(*result) : item_view();
}

// The hooks around one call of a stage's function for an item. One thread at a time. The destructor
// leaves the hooks that are still entered, such as those of a flat_map that is not read to its end.
class hooked_call {
 public:
  hooked_call(run_state& run, const stage_counters& stage, const lineage& origin,
              unsigned attempt = 1) noexcept
      : run_(run), stage_(stage), origin_(origin), attempt_(attempt) {}
  hooked_call(const hooked_call&) = delete;
  ~hooked_call() {
    if (inside_) leave_early();
  }

  // Whether the run has hooks.
  bool has_hooks() const noexcept { return !run_.options().hooks.all().empty(); }

  // Enters all hooks. If a hook throws, rethrows: the hooks before it stay entered, and the
  // function must not be called.
  void enter(std::string item, const item_view& argument);

  // Leaves the entered hooks. `thrown`: the exception of the function or of enter(), or null.
  // Returns the failure of the call: `thrown`, else the first exception of a hook, or null.
  std::exception_ptr end(const std::exception_ptr& thrown, const item_view& result) noexcept {
    return inside_ ? leave_all(thrown, result) : thrown;
  }

  // The same after the function has returned. Throws the failure, if there is one.
  void leave(const item_view& result) {
    if (!inside_) return;
    if (auto failure = leave_all(nullptr, result)) std::rethrow_exception(failure);
  }

 private:
  // The entered hooks: as many as there are locals.
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
  std::optional<entered> inside_;
};

// The size of an item's contents in bytes: of a buffer, a sample, a tensor, a batch, or an item
// with a member bytes(). 0 for other types, and if the member throws.
template <class T>
std::uint64_t content_bytes(const T& item) noexcept try {
  if constexpr (requires {
                  { item.content_bytes() } -> std::convertible_to<std::size_t>;
                })
    return item.content_bytes();
  else if constexpr (requires {
                       { item.bytes() } -> std::integral;
                     })
    return bytes_of(item);
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
} catch (...) {
  return 0;
}

// Counts an item that the stage passes on. One thread at a time.
template <class T>
void count_out(stage_counters& counters, const T& item) {
  increment(counters.out);
  if (auto bytes = content_bytes(item)) increment(counters.bytes, bytes);
}

// The name of the type F in the text of a __PRETTY_FUNCTION__, without namespaces, functions around
// it and template arguments; `otherwise` for lambdas and std::function.
std::string short_type_name(std::string_view pretty_function, std::string_view otherwise);

// The name of a stage: `given`, else the name of the type of its function, else `otherwise`.
template <class F>
std::string stage_name(std::string_view given, std::string_view otherwise) {
  if (!given.empty()) return std::string(given);
  if constexpr (std::is_class_v<F>)
    return short_type_name(__PRETTY_FUNCTION__, otherwise);
  else
    return std::string(otherwise);
}

}  // namespace lade::detail
