// background: a coroutine that lives as long as a run.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/context.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/node.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lade {

struct background_options {
  std::string_view name = {};  // stage name in errors
};

namespace detail {

// Starts the task that `work` returns on a reactor, concurrently with the stages of a run. When the
// run is over, it asks the task to stop and waits for its end. An exception of `work` or of the
// task ends the run, except error(stopped) after that request.
void start_background(run_state& run, std::string name, const std::function<task<>()>& work);

// The node of background work. Its items are those of the node before.
template <class T, class Work>
class background_node final : public node<T> {
 public:
  background_node(counted_ptr<const node<T>> before, shared_const<Work> work, std::string name)
      : node<T>(node_facts::behind(before, "background", name).uncounted()),
        before_(std::move(before)),
        work_(std::move(work)),
        name_(std::move(name)) {}

  async_generator<T> open(const open_context& run) const override {
    if (run.run->is_first_start(&*work_)) start_background(*run.run, name_, std::cref(*work_));
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

// A function with its arguments.
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

// A coroutine that lives as long as a run: it refreshes credentials, writes statistics, or reads
// ahead. Items pass unchanged, at no cost.
//
//   lade::task<> refresh(std::shared_ptr<credentials> of) {
//     while (true) {
//       co_await lade::sleep(std::chrono::minutes(10));
//       co_await of->renew();
//     }
//   }
//   ... | lade::map(lade::io::read) | lade::background(refresh, {.name = "refresh"}, mine) | ...
//
// `work(arguments...)` returns a task<>. Every run calls it once, with copies of the arguments,
// when it opens the stage (see run.hpp). The run does not wait for it before it delivers items.
//
// Thread: the coroutine resumes on a reactor, so it must not compute or block there (see compute in
// thread_pool.hpp).
//
// End: when the run is over, for any reason, the coroutine is asked to stop. Awaits of lade in it
// then throw error(stopped), which ends it. The run waits for its end. The coroutine may also
// return earlier. If it throws anything else, the run ends with a stage_error that has its name.
//
// Caches: if a cache yields all items of a run, the stages before the cache are not opened, and
// background work there is not started.
template <class F, class... Args>
background_stage<std::decay_t<F>, std::decay_t<Args>...> background(
    F&& work, const background_options& options = {}, Args&&... arguments) {
  static_assert(std::is_invocable_r_v<task<>, const F&, const Args&...>,
                "lade::background: the function must take the arguments, be callable as const, and "
                "return a task<>");
  return {std::forward<F>(work), options, {std::forward<Args>(arguments)...}};
}

// The same for code that a stage calls, such as a store. Starts `work()` as background work of the
// run of the calling coroutine, unless that run has started work with the same `key` before.
// Returns whether it started the work. Outside a run it does nothing and returns false.
//
// `where`: the execution context of the calling coroutine. `key`: an address that identifies the
// work, such as that of the store. `name`: the name in errors.
bool start_background(const context& where, const void* key, std::string name,
                      const std::function<task<>()>& work);

}  // namespace lade
