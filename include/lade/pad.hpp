// pad, pack, pack_rows: sequences of different lengths in one tensor.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/context.hpp>
#include <lade/detail/data/stacked_fields.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/concurrent.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/sample_batch.hpp>
#include <lade/tensor.hpp>
#include <lade/thread_pool.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade {

// Sequences as the rows of a tensor. Rows of shorter sequences are padded at their end.
class padded_batch {
 public:
  padded_batch(tensor data, tensor lengths)
      : data_(std::move(data)), lengths_(std::move(lengths)) {}

  // [size(), longest, ...]
  const tensor& data() const noexcept { return data_; }

  // The lengths of the sequences without padding: i64 [size()].
  const tensor& lengths() const noexcept { return lengths_; }

  std::size_t size() const noexcept { return static_cast<std::size_t>(lengths_.shape()[0]); }
  std::size_t bytes() const { return data_.spec().bytes() + lengths_.spec().bytes(); }

 private:
  tensor data_;
  tensor lengths_;
};

// Sequences one after the other in one tensor: the layout of attention kernels for variable
// lengths.
class packed_batch {
 public:
  packed_batch(tensor data, tensor offsets)
      : data_(std::move(data)), offsets_(std::move(offsets)) {}

  // [total, ...], where total is the last offset. A row of pack_rows has [length, ...]: its
  // elements after the last offset are padding.
  const tensor& data() const noexcept { return data_; }

  // i64 [size() + 1]: the index at which each sequence begins, and the end of the last one.
  const tensor& offsets() const noexcept { return offsets_; }

  std::size_t size() const noexcept { return static_cast<std::size_t>(offsets_.shape()[0]) - 1; }
  std::int64_t longest() const noexcept;
  std::size_t bytes() const { return data_.spec().bytes() + offsets_.spec().bytes(); }

 private:
  tensor data_;
  tensor offsets_;
};

struct pad_options {
  // `length`: the length of all rows, up to 2^48; 0: the length of the longest sequence in the
  // batch, rounded up to a multiple of `multiple_of`. `multiple_of`: from 1 to 1,073,741,824.
  std::size_t length = 0;
  std::size_t multiple_of = 1;

  double value = 0;  // padding value; must be 0 for f16 and bf16

  // For batches of samples: the fields that become tensors, separated by commas: "tokens,mask".
  std::string_view fields = {};

  // The number of batches in flight: 1 to 1,048,576. `automatic`: all automatic stages of the run
  // together use as many CPUs as the run may use for them; see autotune.hpp.
  unsigned concurrency = 1;

  // The pool that pads; null: the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  // Policy for batches that cannot be padded; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};
  std::string_view name = {};  // name in statistics and errors
};

struct pack_options {
  // The number of batches in flight: 1 to 1,048,576. `automatic`: all automatic stages of the run
  // together use as many CPUs as the run may use for them; see autotune.hpp.
  unsigned concurrency = 1;

  // The pool that packs; null: the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  // Policy for batches that cannot be packed; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};
  std::string_view name = {};  // name in statistics and errors
};

struct pack_rows_options {
  std::size_t length = 0;      // length of a row: 1 to 2^48; required
  std::size_t open_rows = 16;  // rows that wait for fitting sequences: 1 to 1,073,741,824
  bool split = false;          // whether to split sequences longer than a row; else they fail
  double value = 0;            // padding value; must be 0 for f16 and bf16

  // Policy for sequences that cannot be packed; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};
  std::string_view name = {};  // name in statistics and errors
};

namespace detail {

template <class E>
concept tensor_element = !std::same_as<E, bool> && has_element_type<E>;

// A view of a sequence in memory: `length` steps, each of the shape `step`. Does not own `data`.
struct sequence_view {
  element_type type;
  dimensions step;
  std::int64_t length;
  const std::byte* data;
};

template <tensor_element E>
sequence_view sequence_of(const std::vector<E>& sequence) {
  return {type_of<E>(),
          {},
          static_cast<std::int64_t>(sequence.size()),
          reinterpret_cast<const std::byte*>(sequence.data())};
}

// Throws error(invalid_data) if the tensor has no dimension, or if it is not contiguous in host
// memory.
sequence_view sequence_of(const tensor& sequence);

template <class S>
concept sequence = requires(const S& s) {
  { sequence_of(s) } -> std::same_as<sequence_view>;
};

template <sequence S>
std::vector<sequence_view> views_of(const std::vector<S>& sequences) {
  std::vector<sequence_view> views;
  views.reserve(sequences.size());
  for (auto& each : sequences) views.push_back(sequence_of(each));
  return views;
}

// Throw error(invalid_argument) that names the stage and the option if an option is invalid.
void require_padding(const pad_options& options, const std::string& stage);
void require_packing(const pack_options& options, const std::string& stage);
void require_rows(const pack_rows_options& options, const std::string& stage);
void require_fields(std::span<const std::string> fields, const std::string& stage);

// Copy the sequences into one tensor, in memory of the context. Throw error(invalid_data) if there
// are no sequences or if they differ in type or step, and error(limit_exceeded) if they are too
// long.
padded_batch pad_sequences(std::span<const sequence_view> sequences, const pad_options& options,
                           const context& execution);
packed_batch pack_sequences(std::span<const sequence_view> sequences, const context& execution);

// Makes one tensor per field of the samples, and for each padded field also a tensor of the
// lengths.
sample_batch pad_samples(std::vector<sample> samples, std::span<const std::string> fields,
                         const pad_options& options, const context& execution);

// Completes the facts of a stage that open_collating() opens.
node_facts collating(node_facts of_stage, unsigned concurrency, const thread_pool* pool,
                     const failure_policy& policy);

// Opens a stage of workers that call make(batch, context). The stage holds as many finished batches
// as it has workers.
template <class Out, class S, class Options, class Make>
async_generator<Out> open_collating(const pipeline<std::vector<S>>& in, const open_context& run,
                                    const Options& options, Make make) {
  auto threads = (options.pool ? *options.pool : run.run->runtime().pool()).size();
  auto calls = calls_at_a_time(options.concurrency, run.run->options().tune, threads);
  auto workers = std::min(calls, threads);
  auto execution = run.run->make_context();
  work_for(run.add_stage(), execution);
  auto collate = [make, execution](std::vector<S>&& batch) {
    return make(std::move(batch), execution);
  };
  return open_concurrent<Out>(in, run,
                              {.slots = 2 * workers,
                               .workers = workers,
                               .pool = options.pool,
                               .policy = {.finally = options.on_error,
                                          .retry = {.attempts = 1},
                                          .budget = options.error_budget},
                               .shares_cpus = options.concurrency == automatic},
                              function_for<std::vector<S>>(shared_const(collate)));
}

// The open rows of a pack_rows. Each sequence is packed into the first row with enough free space.
class row_packer {
 public:
  using row = held_item<packed_batch>;

  row_packer(const pack_rows_options& options, const context& execution)
      : options_(options), context_(execution) {}

  // Copies a sequence into a row, or its pieces into several rows. If the sequence is unfit, throws
  // as pack_sequences does and changes nothing. If memory runs out, throws; the pieces that have
  // been copied stay in their rows.
  void add(const sequence_view& sequence, const lineage& origin);

  // The rows that have become complete: full rows, and the fullest row if there would have been
  // more than `open_rows`. Ask for them also after a failure.
  std::vector<row> take_done() noexcept { return std::exchange(done_, {}); }

  // Closes all open rows and returns them, in the order in which they were opened.
  std::vector<row> rest();

 private:
  struct open_row {
    tensor data;
    std::vector<std::int64_t> offsets{0};
    lineage origin;
  };

  void require_fit(const sequence_view& sequence);
  void put(const sequence_view& piece, const lineage& origin);
  std::size_t row_for(std::int64_t length);
  void complete(std::size_t number);
  std::int64_t free_elements(const open_row& at) const noexcept;
  row close(std::size_t number);

  pack_rows_options options_;
  context context_;
  std::optional<tensor_spec> row_spec_;  // type and shape of all rows, from the first sequence
  std::vector<open_row> open_;
  std::vector<row> done_;
};

}  // namespace detail

class pad_stage {
 public:
  explicit pad_stage(const pad_options& options)
      : options_(options),
        name_(options.name.empty() ? "pad" : options.name),
        fields_(detail::field_names(options.fields, name_)) {
    detail::require_padding(options, name_);
  }

  template <detail::sequence S>
  pipeline<padded_batch> attach(const pipeline<std::vector<S>>& in) const {
    return detail::make_pipeline<padded_batch>(
        facts(in.last()), [in, self = *this](const detail::open_context& run) {
          return detail::open_collating<padded_batch>(
              in, run, self.options_,
              [options = self.options_](const std::vector<S>& batch, const context& execution) {
                return detail::pad_sequences(detail::views_of(batch), options, execution);
              });
        });
  }

  // Throws error(invalid_argument) if no fields were given.
  pipeline<sample_batch> attach(const pipeline<std::vector<sample>>& in) const;

 private:
  detail::node_facts facts(detail::node_ptr in) const;

  pad_options options_;
  std::string name_;
  std::vector<std::string> fields_;
};

// Copies the sequences of a batch into one tensor, each padded to the length of the longest one. A
// sequence is a std::vector of numbers of 8 to 64 bits, or a tensor. The first dimension of a
// tensor is its length; all other dimensions must be the same.
//
// A batch of samples becomes a sample_batch, with one tensor for each field in `fields`. Integers
// become i64 [size()], numbers f64 [size()]. Tensors are padded to the longest of the field, and
// the tensor "<field>.lengths" has their lengths as i64 [size()]:
//
//   lade::bucket(length_of_tokens, {.size = 64}) | lade::pad({.fields = "tokens,weight"})
//
//   batch["tokens"], batch["tokens.lengths"], batch["weight"]
//
// Thread: the CPU pool, or the pool of the options. The tensors are in the memory of the run.
//
// Errors: a batch fails
// - if it is empty,
// - if its sequences differ in type, or in a dimension other than the length,
// - if a sequence is longer than `length`,
// - or if the type of the sequences cannot represent `value`.
//
// pad() throws error(invalid_argument) if `length` is not a multiple of `multiple_of`, or if an
// option is invalid.
inline pad_stage pad(const pad_options& options = {}) { return pad_stage(options); }

class pack_stage {
 public:
  explicit pack_stage(const pack_options& options)
      : options_(options), name_(options.name.empty() ? "pack" : options.name) {
    detail::require_packing(options, name_);
  }

  template <detail::sequence S>
  pipeline<packed_batch> attach(const pipeline<std::vector<S>>& in) const {
    return detail::make_pipeline<packed_batch>(
        detail::collating(detail::node_facts::behind(in.last(), "pack", name_),
                          options_.concurrency, options_.pool,
                          {.finally = options_.on_error, .budget = options_.error_budget}),
        [in, self = *this](const detail::open_context& run) {
          return detail::open_collating<packed_batch>(
              in, run, self.options_, [](const std::vector<S>& batch, const context& execution) {
                return detail::pack_sequences(detail::views_of(batch), execution);
              });
        });
  }

 private:
  pack_options options_;
  std::string name_;
};

// Like pad, but without padding: copies the sequences of a batch one after the other into one
// tensor, and records the offset of each.
inline pack_stage pack(const pack_options& options = {}) { return pack_stage(options); }

class pack_rows_stage {
 public:
  explicit pack_rows_stage(const pack_rows_options& options)
      : options_(options), name_(options.name.empty() ? "pack_rows" : options.name) {
    detail::require_rows(options, name_);
  }

  template <detail::sequence S>
  pipeline<packed_batch> attach(const pipeline<S>& in) const {
    return detail::make_pipeline<packed_batch>(
        facts(in.last()), [in, self = *this](const detail::open_context& run) {
          auto& counters = run.add_stage();
          return fill_rows(in.open(run), self, run, counters);
        });
  }

 private:
  detail::node_facts facts(detail::node_ptr in) const;

  template <class S>
  static async_generator<packed_batch> fill_rows(async_generator<S> in, pack_rows_stage self,
                                                 detail::open_context run,
                                                 detail::stage_counters& counters) {
    auto execution = run.run->make_context();
    detail::work_for(counters, execution);
    detail::row_packer rows(self.options_, execution);
    std::exception_ptr failure;
    while (auto* sequence = co_await in.next().apart().deferring(failure)) {
      detail::increment(counters.in);
      if (run.run->failures().is_behind()) co_await run.run->failures().caught_up();
      const bool added = self.add(rows, *sequence, in.origin(), run, counters, failure);
      detail::release_item(*sequence);
      auto dropped = added ? lineage() : in.origin();
      auto done = rows.take_done();
      for (auto& row : done) {
        detail::count_out(counters, row.item);
        detail::with_lineage<packed_batch> yielded{row.origin, row.item};
        co_yield yielded;
      }
      if (failure) break;
      if (!added) co_await detail::consume(dropped);
    }
    auto last = failure && run.rules().fails_at_once() ? std::vector<detail::row_packer::row>()
                                                       : rows.rest();
    for (auto& row : last) {
      detail::count_out(counters, row.item);
      detail::with_lineage<packed_batch> yielded{row.origin, row.item};
      co_yield yielded;
    }
    if (failure) std::rethrow_exception(failure);
  }

  // Returns false if the sequence cannot be packed. Then sets `failure`, unless the policy drops
  // the sequence.
  template <class S>
  bool add(detail::row_packer& rows, const S& sequence, const lineage& origin,
           const detail::open_context& run, detail::stage_counters& counters,
           std::exception_ptr& failure) const {
    try {
      rows.add(detail::sequence_of(sequence), origin);
      return true;
    } catch (...) {
      detail::failure_policy policy{.finally = options_.on_error, .budget = options_.error_budget};
      failure = run.failure(counters, policy, {}, origin);
      return false;
    }
  }

  pack_rows_options options_;
  std::string name_;
};

// Packs sequences (see pad) into rows of the same length, each into the first row with enough free
// space. A row is yielded when it is full. If a new row would exceed `open_rows`, the fullest row
// is yielded. At the end, the remaining rows are yielded.
//
// A sequence that is longer than a row fails, or is split with `split`. A run with `split` has no
// state (no checkpoint), because the pieces of a sequence are in different rows.
//
// A run that resumes from a state starts with empty rows. It still delivers every sequence once,
// but the rows differ from those of an uninterrupted run.
//
// Throws error(invalid_argument) that names the option if an option is invalid.
inline pack_rows_stage pack_rows(const pack_rows_options& options) {
  return pack_rows_stage(options);
}

}  // namespace lade
