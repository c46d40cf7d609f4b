// per_run: a function object that every run constructs for itself.

#pragma once

#include <lade/runtime.hpp>
#include <lade/trace.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace lade {

namespace detail {
class run_state;
class stage_counters;
struct open_context;
}  // namespace detail

// The run that a function is made for, and the stage that calls the function. A copy refers to the
// same run. Any thread. Valid until the run has ended; the function is destroyed before.
class stage_run {
 public:
  // For stages: the run, and the place at which the stage is opened.
  stage_run(const detail::open_context& run, const detail::stage_counters& stage);

  lade::runtime& runtime() const noexcept;
  std::uint64_t epoch() const noexcept;
  std::uint64_t seed() const noexcept;
  lade::trace* trace() const noexcept;  // null if the run has no trace

  // A stop is requested when the stage's items are no longer needed.
  const std::stop_token& stop() const noexcept { return stop_; }

  // The name of the stage in statistics and errors. Do not store it early: stages of the same name
  // get their numbers when all stages of the run have been opened.
  std::string stage() const;

  // Reports a warning, one sentence without a newline, to run_options::on_warning.
  void warn(const std::string& sentence) const;

 private:
  std::shared_ptr<detail::run_state> run_;
  const detail::stage_counters* stage_;
  std::stop_token stop_;
};

// A function for map that every run constructs for itself:
//
//   class ask_model {
//    public:
//     explicit ask_model(const lade::stage_run& run);   // connects to the server
//     lade::task<answer> operator()(question asked) const;
//   };
//   auto begin = [](const lade::stage_run& run) { return ask_model(run); };
//   auto answers = questions | lade::map(lade::per_run(begin), {.concurrency = 16});
//
// `make(const stage_run&)` returns the function. The pipeline owns `make`. Only map takes such a
// function. One that returns a std::optional filters the items; one that returns a std::vector,
// with unbatch behind the map, makes several items of one.
//
// Threads: `make` is called on the CPU pool when a run opens the stage (see run.hpp), possibly for
// several runs at a time. The function is called as map says: by several threads at a time, through
// a const reference.
//
// Lifetime: the function is destroyed on a thread of the run after its last call, before the run
// ends.
//
// Errors: an exception of `make` ends the run with a stage_error that names the stage.
//
// Stages that are classes: any class with a member attach() is a stage. It applies other stages to
// the pipeline, such as a map with a function for each run:
//
//   class ask {
//    public:
//     template <class In>
//     auto attach(const lade::pipeline<In>& in) const {
//       return in | lade::map(lade::per_run(begin), {.concurrency = 16, .kind = "ask"});
//     }
//   };
//   auto answers = questions | ask();
//
// A function that copies batches elsewhere may have a member `host_memory() const`, which returns a
// memory_resource&: the memory from which the function copies fastest. A batch_into before the
// stage then allocates its tensors there. The function's own buffers come from there too, unless
// the options of the map name a memory. A std::shared_ptr owns the resource, or it outlives the
// pipelines, the runtime and all buffers: see memory_resource.hpp.
template <class Make>
class per_run {
  static_assert(std::is_invocable_v<const Make&, const stage_run&>,
                "lade::per_run: make must take a const lade::stage_run& and be callable as const: "
                "not a mutable lambda, not one without a parameter");

 public:
  using function = std::invoke_result_t<const Make&, const stage_run&>;
  static_assert(!std::is_void_v<function>, "lade::per_run: make must return the function");

  explicit per_run(Make make) : make_(std::move(make)) {}

  function operator()(const stage_run& run) const { return make_(run); }

 private:
  Make make_;
};

}  // namespace lade
