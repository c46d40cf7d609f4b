// filter and flat_map: fewer items, or more.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/run_state.hpp>
#include <lade/pipeline.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lade {

struct filter_options {
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};
  std::string_view name = {};  // in statistics and errors
};

template <class F>
class filter_stage {
 public:
  filter_stage(F predicate, const filter_options& options)
      : predicate_(std::move(predicate)),
        policy_{.finally = options.on_error, .budget = options.error_budget},
        name_(detail::stage_name<F>(options.name, "filter")) {}

  template <class T>
    requires std::predicate<const F&, const T&>
  pipeline<T> attach(const pipeline<T>& in) const {
    return detail::make_pipeline<T>(in.length() + 1,
                                    [in, self = *this](const detail::opening& run) {
                                      auto& counters = run.add_stage(self.name_);
                                      return keep(in.open(run), self, run, counters);
                                    });
  }

 private:
  template <class T>
  static async_generator<T> keep(async_generator<T> in, filter_stage self, detail::opening run,
                                 detail::stage_counters& counters) {
    while (auto item = co_await in.next()) {
      detail::bump(counters.in);
      bool kept = false;
      detail::hooked_call call(*run.run, counters, *item, in.origin());
      try {
        kept = std::invoke(self.predicate_, std::as_const(*item));
        call.leave(nullptr);
      } catch (...) {
        call.leave(std::current_exception());
        auto failure = run.failure(counters, self.policy_, detail::name_of(*item), in.origin());
        if (failure) std::rethrow_exception(failure);
      }
      if (!kept) continue;
      detail::bump(counters.out);
      co_yield *item;
    }
  }

  F predicate_;
  detail::failure_policy policy_;
  std::string name_;
};

// Keeps the items for which `predicate(item)` is true. Called when the next stage asks for an item,
// on that stage's thread of the CPU pool.
template <class F>
filter_stage<std::decay_t<F>> filter(F&& predicate, const filter_options& options = {}) {
  return {std::forward<F>(predicate), options};
}

template <class F>
class flat_map_stage {
 public:
  flat_map_stage(F function, const filter_options& options)
      : function_(std::move(function)),
        policy_{.finally = options.on_error, .budget = options.error_budget},
        name_(detail::stage_name<F>(options.name, "flat_map")) {}

  template <class In>
  auto attach(const pipeline<In>& in) const {
    using many = std::invoke_result_t<const F&, In>;
    using out = typename element<std::remove_cvref_t<many>>::type;
    return detail::make_pipeline<out>(in.length() + 1,
                                      [in, self = *this](const detail::opening& run) {
                                        auto& counters = run.add_stage(self.name_);
                                        auto whole = run.making_parts(self.name_);
                                        return spread<out>(in.open(whole), self, run, counters);
                                      });
  }

 private:
  template <class Many>
  struct element {
    using type = std::ranges::range_value_t<Many>;
  };
  template <class T>
  struct element<async_generator<T>> {
    using type = T;
  };

  // What is yielded goes on before the function's generator ends. A failure keeps what was
  // yielded before it.
  template <class Out, class In>
  static async_generator<Out> spread(async_generator<In> in, flat_map_stage self,
                                     detail::opening run, detail::stage_counters& counters) {
    while (auto item = co_await in.next()) {
      detail::bump(counters.in);
      auto name = detail::name_of(*item);
      detail::hooked_call call(*run.run, counters, name, in.origin());
      auto parts = each(self.function_, std::move(*item), in.origin());
      while (true) {
        Out* part = nullptr;
        std::exception_ptr failure;
        try {
          part = co_await parts.next();
          if (!part) call.leave(nullptr);
        } catch (...) {
          call.leave(std::current_exception());
          failure = run.failure(counters, self.policy_, name, in.origin());
        }
        if (failure) std::rethrow_exception(failure);
        if (!part) break;
        detail::bump(counters.out);
        co_yield *part;
      }
    }
  }

  // The parts of one item, each with the item's lineage.
  template <class In>
  static auto each(const F& function, In item, lineage origin) -> async_generator<
      typename element<std::remove_cvref_t<std::invoke_result_t<const F&, In>>>::type> {
    using out = typename element<std::remove_cvref_t<std::invoke_result_t<const F&, In>>>::type;
    auto parts = std::invoke(function, std::move(item));
    if constexpr (requires { parts.next(); }) {
      while (auto* part = co_await parts.next()) {
        detail::with_lineage<out> yielded{origin, *part};
        co_yield yielded;
      }
    } else {
      for (auto&& part : parts) {
        out value(std::move(part));
        detail::with_lineage<out> yielded{origin, value};
        co_yield yielded;
      }
    }
  }

  F function_;
  detail::failure_policy policy_;
  std::string name_;
};

// Replaces every item by the items of `function(item)`: a range, or an async_generator, whose items
// go on as they come. Called as the predicate of filter is.
template <class F>
flat_map_stage<std::decay_t<F>> flat_map(F&& function, const filter_options& options = {}) {
  return {std::forward<F>(function), options};
}

}  // namespace lade
