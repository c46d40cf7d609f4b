// The calls of a stage's function, behind interfaces that depend on the types of the items alone.
// So a stage is compiled once for its items, and not for every function.

#pragma once

#include <lade/buffer_pool.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/lineage.hpp>
#include <lade/memory_resource.hpp>
#include <lade/per_run.hpp>
#include <lade/per_worker.hpp>
#include <lade/random.hpp>
#include <lade/task.hpp>
#include <lade/waiting_items.hpp>

#include <any>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace lade::detail {

// Identifies an item of a stage, independent of the threads: the source position of the item, the
// latest if it has several, and the number of the part (lineage::part).
struct item_identity {
  std::uint64_t position = 0;
  std::uint64_t part = 0;
};

// Returns the identity of each item of a stage, called once for each in their order. Items without
// a position are numbered.
class identify {
 public:
  item_identity operator()(const lineage& origin) noexcept {
    if (origin.empty()) return {no_position, number_++};
    return {origin.latest(), origin.part()};
  }

 private:
  static constexpr auto no_position = ~std::uint64_t{0};  // a position that no source has

  std::uint64_t number_ = 0;
};

// The random numbers of the items of one stage. `stage`: the number of the stage in its pipeline.
class stage_random {
 public:
  stage_random(const open_context& run, std::uint64_t stage) noexcept
      : seed_(run.pass->seed), epoch_(run.pass->epoch), stage_(stage) {}
  random operator()(const item_identity& item) const noexcept {
    return random(seed_, epoch_, item.position, stage_, item.part);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::uint64_t stage_;
};

// The random numbers of one item, computed only if the function takes them.
class item_random {
 public:
  item_random(const stage_random& draws, const item_identity& item) noexcept
      : draws_(draws), item_(item) {}
  operator random() const noexcept { return draws_(item_); }

 private:
  const stage_random& draws_;
  item_identity item_;
};

// Whether apply_to accepts an item.
template <class F, class In>
concept applicable = std::is_invocable_v<F&, In, random> || std::is_invocable_v<F&, In> ||
                     requires(F& function, In item) { function.at(item); } ||
                     requires(F& function, In item) { function[item]; };

// Returns function(item, random) if the function takes random numbers, else function(item). If F is
// a container, looks the item up in it.
template <class F, class In>
decltype(auto) apply_to(F& function, In&& item, const item_random& draw) {
  if constexpr (std::is_invocable_v<F&, In, random>)
    return std::invoke(function, std::forward<In>(item), random(draw));
  else if constexpr (std::is_invocable_v<F&, In>)
    return std::invoke(function, std::forward<In>(item));
  else if constexpr (requires { function.at(item); })
    return function.at(item);
  else
    return function[item];
}

// The function of one worker: shared by all workers, or, with per_worker, a separate instance.
template <class F>
class worker_function {
 public:
  explicit worker_function(const F& shared) noexcept : shared_(shared) {}
  const F& operator*() const noexcept { return shared_; }

 private:
  const F& shared_;
};
template <class Make>
class worker_function<per_worker<Make>> : public per_worker<Make>::lease {
 public:
  explicit worker_function(const per_worker<Make>& functions)
      : per_worker<Make>::lease(functions.borrow()) {}
};

// The type of the function that a run calls: F, or, with per_run, the function made for the run.
template <class F>
struct run_function {
  using type = F;
};
template <class Make>
struct run_function<per_run<Make>> {
  using type = typename per_run<Make>::function;
};
template <class F>
using function_of_run = typename run_function<F>::type;

template <class F>
using called =
    std::remove_reference_t<decltype(*std::declval<worker_function<function_of_run<F>>&>())>;

// The result type of a function that returns T or task<T>.
template <class T>
struct outcome_of {
  using type = T;
  static constexpr bool is_task = false;
};
template <class T>
struct outcome_of<task<T>> {
  using type = T;
  static constexpr bool is_task = true;
};

// The item type of a result: T for T and std::optional<T>.
template <class T>
struct item_of {
  using type = T;
};
template <class T>
struct item_of<std::optional<T>> {
  using type = T;
};

// Stores the result of a function in a slot. An empty optional leaves the slot empty.
template <class T, class Result>
void assign(std::optional<T>& slot, Result&& result) {
  if constexpr (std::same_as<std::remove_cvref_t<Result>, std::optional<T>>)
    slot = std::forward<Result>(result);
  else
    slot.emplace(std::forward<Result>(result));
}

// Stores the substitute of a failed item in a slot, if there is one.
template <class T>
void substitute(std::optional<T>& slot, const std::any& item) {
  if constexpr (std::copy_constructible<T>)
    if (auto* given = std::any_cast<T>(&item)) slot.emplace(*given);
}

// The calls of one worker, for a function that returns an item or an optional of it.
template <class In, class Out>
class plain_calls {
 public:
  plain_calls(bool reserves, unsigned at_a_time) noexcept
      : reserves_memory(reserves), items_at_a_time(at_a_time) {}
  virtual ~plain_calls() = default;
  virtual void call(In&& item, const item_random& draw, std::optional<Out>& out) = 0;
  virtual void call(waiting_items<In, Out>& items) = 0;  // if items_at_a_time is above 1
  virtual std::size_t memory_needed(const In& item) const = 0;
  const bool reserves_memory;  // whether memory is to be waited for before a call
  const unsigned items_at_a_time;
};

// The calls of one worker, for a function that returns a task.
template <class In, class Result>
class task_calls {
 public:
  virtual ~task_calls() = default;
  virtual task<Result> call(In&& item, const item_random& draw) = 0;
};

// The types of the calls of F for items of type In.
template <class F, class In>
struct call_types {
  using outcome = outcome_of<std::remove_cvref_t<decltype(apply_to(
      std::declval<called<F>&>(), std::declval<In>(), std::declval<const item_random&>()))>>;
  using out = typename item_of<typename outcome::type>::type;
  using calls = std::conditional_t<outcome::is_task, task_calls<In, typename outcome::type>,
                                   plain_calls<In, out>>;
};

template <class F, class In, class Calls>
class calls_of;

template <class F, class In, class Out>
class calls_of<F, In, plain_calls<In, Out>> final : public plain_calls<In, Out> {
  static constexpr bool reserves = lade::reserves_memory<called<F>, In>;

 public:
  static constexpr unsigned at_a_time = detail::items_at_a_time<called<F>, In, Out>();

  explicit calls_of(const F& function)
      : plain_calls<In, Out>(reserves, at_a_time), function_(function) {}
  void call(In&& item, const item_random& draw, std::optional<Out>& out) override {
    assign(out, apply_to(*function_, std::move(item), draw));
  }
  void call([[maybe_unused]] waiting_items<In, Out>& items) override {
    if constexpr (at_a_time > 1) (*function_)(items);
  }
  std::size_t memory_needed(const In& item) const override {
    if constexpr (reserves) return (*function_).memory_needed(item);
    return 0;
  }

 private:
  worker_function<F> function_;
};

template <class F, class In, class Result>
class calls_of<F, In, task_calls<In, Result>> final : public task_calls<In, Result> {
  static_assert(!says_several<called<F>>,
                "lade::map: a function of tasks takes one item at a time");

 public:
  static constexpr unsigned at_a_time = 1;

  explicit calls_of(const F& function) : function_(function) {}
  task<Result> call(In&& item, const item_random& draw) override {
    return apply_to(*function_, std::move(item), draw);
  }

 private:
  worker_function<F> function_;
};

// Whether a function has host_memory(): the memory from which it copies fastest.
template <class F>
concept says_host_memory = requires(const F& function) {
  { function.host_memory() } -> std::convertible_to<memory_resource&>;
};

// The function of a stage in one run. Makes the calls of each worker.
template <class Calls>
class stage_function : public counted {
 public:
  stage_function(bool draws, unsigned at_a_time) noexcept
      : draws_random(draws), items_at_a_time(at_a_time) {}
  virtual std::unique_ptr<Calls> begin() const = 0;
  virtual memory_resource* host_memory() const { return nullptr; }  // see per_run
  const bool draws_random;
  const unsigned items_at_a_time;
};

template <class F, class In, class Calls>
class stage_function_of final : public stage_function<Calls> {
 public:
  explicit stage_function_of(shared_const<F> function)
      : stage_function<Calls>(draws(*function), calls_of<F, In, Calls>::at_a_time),
        function_(std::move(function)) {}
  std::unique_ptr<Calls> begin() const override {
    return std::unique_ptr<Calls>(new calls_of<F, In, Calls>(*function_));
  }
  memory_resource* host_memory() const override {
    if constexpr (says_host_memory<F>) return &function_->host_memory();
    return nullptr;
  }

 private:
  // A function that takes random numbers may report by is_random() that it draws none.
  static bool draws([[maybe_unused]] const F& function) {
    if constexpr (!std::is_invocable_v<called<F>&, In, random>)
      return false;
    else if constexpr (requires { function.is_random(); })
      return function.is_random();
    else
      return true;
  }

  shared_const<F> function_;
};

// The function of a stage that takes items of type In.
template <class In, class F>
auto function_for(const shared_const<F>& function) {
  using calls = typename call_types<F, In>::calls;
  return counted_ptr<const stage_function<calls>>(new stage_function_of<F, In, calls>(function));
}

// The function of a stage, for all runs. Each run gets the same function, or, with per_run, its
// own.
template <class Calls>
class stage_functions : public counted {
 public:
  explicit stage_functions(bool with_host_memory) noexcept : says_memory(with_host_memory) {}
  virtual counted_ptr<const stage_function<Calls>> for_run(const stage_run& run) const = 0;
  const bool says_memory;
};

template <class F, class In, class Calls>
class stage_functions_of final : public stage_functions<Calls> {
 public:
  explicit stage_functions_of(const shared_const<F>& function)
      : stage_functions<Calls>(says_host_memory<F>), function_(function_for<In>(function)) {}
  counted_ptr<const stage_function<Calls>> for_run(const stage_run&) const override {
    return function_;
  }

 private:
  counted_ptr<const stage_function<Calls>> function_;
};
template <class Make, class In, class Calls>
class stage_functions_of<per_run<Make>, In, Calls> final : public stage_functions<Calls> {
  using function = function_of_run<per_run<Make>>;

 public:
  explicit stage_functions_of(const shared_const<per_run<Make>>& make)
      : stage_functions<Calls>(says_host_memory<function>), make_(make) {}
  counted_ptr<const stage_function<Calls>> for_run(const stage_run& run) const override {
    return function_for<In>(shared_const<function>((*make_)(run)));
  }

 private:
  shared_const<per_run<Make>> make_;
};

template <class In, class F>
auto functions_for(const shared_const<F>& function) {
  using calls = typename call_types<F, In>::calls;
  return counted_ptr<const stage_functions<calls>>(new stage_functions_of<F, In, calls>(function));
}

}  // namespace lade::detail
