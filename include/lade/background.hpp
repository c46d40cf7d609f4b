// background: work that lives as long as a run.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/context.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lade {

struct background_options {
  std::string_view name = {};  // in errors
};

namespace detail {

// Starts `work` beside the stages of a run, on a reactor. It is asked to stop when the run is over;
// the run waits for its end. What it throws ends the run, but for errc::stopped after that.
void start_background(run_state& run, std::string name, task<> work);

// What a pipeline does besides: its items are those of the step before.
template <class T, class Work>
class background_node final : public node<T> {
 public:
  background_node(counted_ptr<const node<T>> before, shared_const<Work> work, std::string name)
      : node<T>(node_facts::behind(before, "background", name).uncounted()),
        before_(std::move(before)),
        work_(std::move(work)),
        name_(std::move(name)) {}

  async_generator<T> open(const open_context& run) const override {
    if (run.run->begins_background(&*work_)) start_background(*run.run, name_, (*work_)());
    return async_generator<T>(before_->open_in(run));
  }

  counted_ptr<const node<T>> then(const order_step& step) const override {
    auto ordered = before_->then(step);
    if (!ordered) return {};
    return counted_ptr(new background_node(std::move(ordered), work_, name_));
  }

 private:
  counted_ptr<const node<T>> before_;
  shared_const<Work> work_;
  std::string name_;
};

// A function and the arguments that it is called with.
template <class F, class... Args>
class background_work {
 public:
  background_work(F work, std::tuple<Args...> arguments)
      : work_(std::move(work)), arguments_(std::move(arguments)) {}

  task<> operator()() const { return std::apply(work_, arguments_); }

 private:
  F work_;
  std::tuple<Args...> arguments_;
};

}  // namespace detail

template <class F, class... Args>
class background_stage {
 public:
  background_stage(F work, const background_options& options, std::tuple<Args...> arguments)
      : work_(detail::background_work<F, Args...>(std::move(work), std::move(arguments))),
        name_(detail::stage_name<F>(options.name, "background")) {}

  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    using work = detail::background_work<F, Args...>;
    return pipeline<T>(
        detail::counted_ptr(new detail::background_node<T, work>(in.last(), work_, name_)));
  }

 private:
  detail::shared_const<detail::background_work<F, Args...>> work_;
  std::string name_;
};

// Work that lives as long as a run: a coroutine that refreshes credentials, writes statistics, or
// reads ahead. Items pass unchanged, at no cost.
//
//   lade::task<> refresh(std::shared_ptr<credentials> of) {
//     while (true) {
//       co_await lade::sleep(std::chrono::minutes(10));
//       co_await of->renew();
//     }
//   }
//   ... | lade::map(lade::io::read) | lade::background(refresh, {.name = "refresh"}, mine) | ...
//
// `work(arguments...)` returns a task<>. It is called once in every run, with copies of the
// arguments, when the run opens the step, and resumes on a reactor: what computes does not belong
// into it (see compute in thread_pool.hpp). A run begins to deliver while it works.
//
// When the run is over, whichever way, the coroutine is asked to stop: awaits of lade then throw
// error(stopped), which ends it. The run waits for that. It may also return before. If it throws
// anything else, the run ends with a stage_error of that name.
//
// Where a cache gives all items of a pass, the steps before the cache are not opened, nor their
// background work begun.
template <class F, class... Args>
  requires std::same_as<std::invoke_result_t<const F&, const Args&...>, task<>>
background_stage<std::decay_t<F>, std::decay_t<Args>...> background(
    F&& work, const background_options& options = {}, Args&&... arguments) {
  return {std::forward<F>(work), options, {std::forward<Args>(arguments)...}};
}

// The same for code that a stage calls, a store for example: starts work beside the run in whose
// coroutine it is called, unless work of the same key has been started in that run. Returns whether
// it has. Outside of a run it does nothing. `where`: the surroundings of the calling coroutine.
bool start_background(const context& where, const void* key, std::string name,
                      const std::function<task<>()>& work);

}  // namespace lade
