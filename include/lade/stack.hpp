// stack: makes tensors of the fields of batched samples that all have one size.

#pragma once

#include <lade/autotune.hpp>
#include <lade/failure.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/sample_batch.hpp>
#include <lade/thread_pool.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade {

struct stack_options {
  // The fields that become tensors, separated by commas: "x, y". Required. The label of a sample is
  // not a field: sample_batch::labels() returns the labels of a batch.
  std::string_view fields = {};

  // The number of batches in flight: 1 to 1,048,576. `automatic`: all automatic stages of the run
  // together use as many CPUs as the run may use for them; see autotune.hpp.
  unsigned concurrency = 1;

  // The pool that stacks; null: the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  // Policy for batches that cannot be stacked; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};
  std::string_view name = {};  // name in statistics and errors
};

class stack_stage {
 public:
  explicit stack_stage(const stack_options& options);

  pipeline<sample_batch> attach(const pipeline<std::vector<sample>>& in) const;

 private:
  stack_options options_;
  std::string name_;
  std::vector<std::string> fields_;
};

// Makes tensors of the fields of batched samples, such as arrays of an .npz or features of a
// TFRecord:
//
//   lade::from(lade::io::shards("train-{000..127}.tar")) | lade::flat_map(lade::io::read_tar) |
//       lade::map(arrays_of_sample) | lade::batch(256) | lade::stack({.fields = "x,y"})
//
//   batch["x"], batch["y"]
//
// An integer becomes i64 [size()], a number f64 [size()], a tensor [size(), ...]. Strided tensors
// are copied in the order of their indices. For sequences of different lengths use `pad`. For
// contents that are not decoded yet use `batch_into`, which copies nothing.
//
// Thread: the CPU pool, or the pool of the options. The tensors are in the memory of the run.
//
// Errors: a batch fails if it is empty or if a sample lacks a field. It also fails if the type or
// the shape of a field differs from that of the first sample. stack() throws
// error(invalid_argument) if there are no fields or if an option is invalid.
inline stack_stage stack(const stack_options& options) { return stack_stage(options); }

}  // namespace lade
