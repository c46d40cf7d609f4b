// stack: batches of samples whose fields have one size as tensors.

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
  // The fields that become tensors, separated by commas: "x, y". Must be given. A sample's label is
  // no field: the labels of a batch are in sample_batch::labels().
  std::string_view fields = {};

  // How many batches are worked on at a time: 1 to 1,048,576; `automatic`: as many as the run may
  // use CPUs for its automatic stages, all together (see autotune.hpp).
  unsigned concurrency = 1;

  // Where that is done, if not on the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  // What becomes of batches that cannot be stacked; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};
  std::string_view name = {};  // in statistics and errors
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

// Makes tensors of the fields of batched samples: arrays of an .npz, features of a TFRecord.
//
//   lade::from(lade::io::shards("train-{000..127}.tar")) | lade::flat_map(lade::io::read_tar) |
//       lade::map(arrays_of_sample) | lade::batch(256) | lade::stack({.fields = "x,y"})
//
//   batch["x"], batch["y"]
//
// An integer becomes i64 [size()], a number f64 [size()], a tensor [size(), ...]. Of strided
// tensors the elements are put in order. A batch fails if it is empty, or if a sample lacks a field
// or has one of another type or shape than the first. Sequences of different lengths are for `pad`;
// what has yet to be decoded is for `batch_into`, which copies nothing. Works on the CPU pool, in
// the memory of the run. Throws error(invalid_argument) if no fields are given.
inline stack_stage stack(const stack_options& options) { return stack_stage(options); }

}  // namespace lade
