// per_run: functions that a run makes for itself.

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

// The run that a function is made for, and the stage that calls it. A copy refers to the same run.
// Any thread. Valid as long as the function: until the run has ended.
class stage_run {
 public:
  // For stages: the run and the place that the stage is opened at.
  stage_run(const detail::open_context& run, const detail::stage_counters& stage);

  lade::runtime& runtime() const noexcept;
  std::uint64_t epoch() const noexcept;
  std::uint64_t seed() const noexcept;
  lade::trace* trace() const noexcept;  // null if the run has none

  // Requested when nobody needs further items of the stage.
  const std::stop_token& stop() const noexcept { return stop_; }

  // The name of the stage, as in statistics and errors. Stages of the same name are numbered when
  // all stages of the run have been opened: ask for it when it is needed, not in advance.
  std::string stage() const;

  // Reports a warning, one sentence without a newline, to run_options::on_warning.
  void warn(const std::string& sentence) const;

 private:
  std::shared_ptr<detail::run_state> run_;
  const detail::stage_counters* stage_;
  std::stop_token stop_;
};

// A function for map that every run makes for itself:
//
//   class ask_model {
//    public:
//     explicit ask_model(const lade::stage_run& run);   // connects to the server
//     lade::task<answer> operator()(question asked) const;
//   };
//   auto begin = [](const lade::stage_run& run) { return ask_model(run); };
//   auto answers = questions | lade::map(lade::per_run(begin), {.concurrency = 16});
//
// `make(const stage_run&)` is called when a run opens the stage, on the CPU pool, and returns the
// function. The function is called as map says: by several threads at a time, through a const
// reference. It is destroyed on a thread of the run when the run calls it no more, before the run
// ends. What make throws ends the run with a stage_error that names the stage. `make` is kept by
// the pipeline and may be called for several runs at a time.
//
// So a stage may be a class. It is one because it has attach(), which makes the pipeline of other
// stages:
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
// A function that copies batches to somewhere else has `memory_resource& host_memory() const`: the
// memory that it copies from fastest. Then batch_into before the stage makes its tensors there, and
// so do buffers that the function allocates come from there. The memory must outlive the run.
template <class Make>
class per_run {
 public:
  using function = std::invoke_result_t<const Make&, const stage_run&>;

  explicit per_run(Make make) : make_(std::move(make)) {}

  function operator()(const stage_run& run) const { return make_(run); }

 private:
  Make make_;
};

}  // namespace lade
