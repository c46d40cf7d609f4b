// through: a stage of one's own.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/pipeline.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lade {

namespace detail {

// Passes items on and counts them, where several threads may add to the same counter.
template <class T>
async_generator<T> counted(async_generator<T> items, std::atomic<std::uint64_t>& counter) {
  while (auto* item = co_await items.next()) {
    counter.fetch_add(1, std::memory_order_relaxed);
    co_yield *item;
  }
}

// Passes a stage's items on, counts them, and names the stage in what it throws.
template <class T>
async_generator<T> observe(async_generator<T> stage, opening run, stage_counters& counters) {
  try {
    while (auto item = co_await stage.next()) {
      bump(counters.out);
      co_yield *item;
    }
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

}  // namespace detail

template <class F, class... Args>
class through_stage {
 public:
  through_stage(F stage, std::tuple<Args...> arguments)
      : stage_(std::move(stage)), arguments_(std::move(arguments)) {}

  template <class In>
  auto attach(const pipeline<In>& in) const {
    using generator = std::invoke_result_t<const F&, async_generator<In>, const Args&...>;
    using out = typename generator::value_type;
    return detail::make_pipeline<out>(
        in.length() + 1, [in, stage = stage_, arguments = arguments_](const detail::opening& run) {
          auto& counters = run.add_stage(detail::stage_name<F>({}, "through"));
          auto items = detail::counted(in.open(run.mixing_parts("through")), counters.in);
          auto call = [&](const Args&... each) {
            return std::invoke(stage, std::move(items), each...);
          };
          auto opened =
              detail::begin_with([&] { return std::apply(call, arguments); }, run, counters);
          return detail::observe<out>(std::move(opened), run, counters);
        });
  }

 private:
  F stage_;
  std::tuple<Args...> arguments_;
};

// A stage that is a coroutine over a generator: `stage(async_generator<In>, arguments...)` returns
// an async_generator of the new items. Called once for every run, with copies of the arguments.
template <class F, class... Args>
through_stage<std::decay_t<F>, std::decay_t<Args>...> through(F&& stage, Args&&... arguments) {
  return {std::forward<F>(stage), {std::forward<Args>(arguments)...}};
}

}  // namespace lade
