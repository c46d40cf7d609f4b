// pad, pack, pack_rows: sequences of different lengths as one tensor.

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

// Sequences as the rows of a tensor, filled up behind those that are shorter.
class padded_batch {
 public:
  padded_batch(tensor data, tensor lengths)
      : data_(std::move(data)), lengths_(std::move(lengths)) {}

  // [size(), longest, ...]
  const tensor& data() const noexcept { return data_; }

  // Of the sequences, without what fills them up: i64 [size()].
  const tensor& lengths() const noexcept { return lengths_; }

  std::size_t size() const noexcept { return static_cast<std::size_t>(lengths_.shape()[0]); }
  std::size_t bytes() const { return data_.spec().bytes() + lengths_.spec().bytes(); }

 private:
  tensor data_;
  tensor lengths_;
};

// Sequences one after the other, as attention kernels for variable lengths take them.
class packed_batch {
 public:
  packed_batch(tensor data, tensor offsets)
      : data_(std::move(data)), offsets_(std::move(offsets)) {}

  // [total, ...]; in a row of pack_rows, what is behind the last offset fills it up.
  const tensor& data() const noexcept { return data_; }

  // i64 [size() + 1]: where each sequence begins, and where the last one ends.
  const tensor& offsets() const noexcept { return offsets_; }

  std::size_t size() const noexcept { return static_cast<std::size_t>(offsets_.shape()[0]) - 1; }
  std::int64_t longest() const noexcept;
  std::size_t bytes() const { return data_.spec().bytes() + offsets_.spec().bytes(); }

 private:
  tensor data_;
  tensor offsets_;
};

struct pad_options {
  // Of all rows, up to 2^48; 0: that of the longest in the batch, rounded up to a multiple of
  // `multiple_of`, from 1 to 1,073,741,824.
  std::size_t length = 0;
  std::size_t multiple_of = 1;

  double value = 0;  // which fills up; 0 for f16 and bf16

  // Of batches of samples: the fields that become tensors, separated by commas: "tokens,mask".
  std::string_view fields = {};

  // How many batches are worked on at a time: 1 to 1,048,576; `automatic`: as many as the run may
  // use CPUs for its automatic stages, all together (see autotune.hpp).
  unsigned concurrency = 1;

  // Where that is done, if not on the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  // What becomes of batches that cannot be padded; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};
  std::string_view name = {};  // in statistics and errors
};

struct pack_options {
  // How many batches are worked on at a time: 1 to 1,048,576; `automatic`: as many as the run may
  // use CPUs for its automatic stages, all together (see autotune.hpp).
  unsigned concurrency = 1;

  // Where that is done, if not on the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  // What becomes of batches that cannot be packed; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};
  std::string_view name = {};  // in statistics and errors
};

struct pack_rows_options {
  std::size_t length = 0;      // of a row: 1 to 2^48; must be given
  std::size_t open_rows = 16;  // that wait for sequences which fit: 1 to 1,073,741,824
  bool split = false;          // sequences that are longer than a row, rather than fail
  double value = 0;            // which fills up; 0 for f16 and bf16

  // What becomes of sequences that cannot be packed; see failure.hpp.
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};
  std::string_view name = {};  // in statistics and errors
};

namespace detail {

template <class E>
concept tensor_element = !std::same_as<E, bool> && has_element_type<E>;

// Elements in memory: `length` times the shape `step`.
struct sequence_view {
  element_type type;
  dimensions step;
  std::int64_t length;
  const std::byte* data;
};

template <tensor_element E>
sequence_view view_of(const std::vector<E>& sequence) {
  return {type_of<E>(),
          {},
          static_cast<std::int64_t>(sequence.size()),
          reinterpret_cast<const std::byte*>(sequence.data())};
}

// Throws error(invalid_data) for one that is no sequence, or is not in one piece of host memory.
sequence_view view_of(const tensor& sequence);

template <class S>
concept sequence = requires(const S& s) {
  { view_of(s) } -> std::same_as<sequence_view>;
};

template <sequence S>
std::vector<sequence_view> views_of(const std::vector<S>& sequences) {
  std::vector<sequence_view> views;
  views.reserve(sequences.size());
  for (auto& each : sequences) views.push_back(view_of(each));
  return views;
}

// Throw error(invalid_argument) that names the stage and the option that cannot work.
void require_padding(const pad_options& options, const std::string& stage);
void require_packing(const pack_options& options, const std::string& stage);
void require_rows(const pack_rows_options& options, const std::string& stage);
void require_fields(std::span<const std::string> fields, const std::string& stage);

// Throw error(invalid_data) for sequences that do not fit together, and error(limit_exceeded) for
// those that are too long. The tensors are in memory of the surroundings.
padded_batch pad_sequences(std::span<const sequence_view> sequences, const pad_options& options,
                           const context& surroundings);
packed_batch pack_sequences(std::span<const sequence_view> sequences, const context& surroundings);

// The same of samples: a tensor for every field, and one of the lengths for those that are padded.
sample_batch pad_samples(std::vector<sample> samples, std::span<const std::string> fields,
                         const pad_options& options, const context& surroundings);

// A stage of workers, with as much room for finished batches, each of which calls
// make(batch, surroundings).
template <class Out, class S, class Options, class Make>
async_generator<Out> open_collating(const pipeline<std::vector<S>>& in, const open_context& run,
                                    const std::string& name, const Options& options, Make make) {
  auto threads = (options.pool ? *options.pool : run.run->runtime().pool()).size();
  auto calls = calls_at_a_time(options.concurrency, run.run->options().tune, threads);
  auto workers = std::min(calls, threads);
  auto surroundings = run.run->surroundings();
  work_for(run.add_stage(name), surroundings);
  auto collate = [make, surroundings](std::vector<S>&& batch) {
    return make(std::move(batch), surroundings);
  };
  return open_concurrent<Out>(in, run, name,
                              {.slots = 2 * workers,
                               .workers = workers,
                               .pool = options.pool,
                               .policy = {.finally = options.on_error,
                                          .retry = {.attempts = 1},
                                          .budget = options.error_budget},
                               .shares_cpus = options.concurrency == automatic},
                              function_for<std::vector<S>>(shared_const(collate)));
}

// Rows that sequences are put into, each into the first that has room.
class row_packer {
 public:
  using row = held_item<packed_batch>;

  row_packer(const pack_rows_options& options, const context& surroundings)
      : options_(options), surroundings_(surroundings) {}

  // Puts a sequence in. Gives the rows that are thereby done: full, or the fullest where there
  // would be too many. Throws as pack_sequences does, and has then put in nothing.
  std::vector<row> add(const sequence_view& sequence, const lineage& origin);

  // The rows that are left, in the order in which they were begun.
  std::vector<row> rest();

 private:
  struct open_row {
    tensor data;
    std::vector<std::int64_t> offsets{0};
    lineage origin;
  };

  void require_fit(const sequence_view& sequence);
  void put(const sequence_view& piece, const lineage& origin, std::vector<row>& done);
  std::size_t row_for(std::int64_t length, std::vector<row>& done);
  std::int64_t room(const open_row& at) const noexcept;
  row close(std::size_t number);

  pack_rows_options options_;
  context surroundings_;
  std::optional<tensor_spec> row_spec_;  // of all rows, once the first sequence has been seen
  std::vector<open_row> open_;
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
        detail::node_facts::behind(in.last(), "pad", name_).on(stage_executor::cpu_pool),
        [in, self = *this](const detail::open_context& run) {
          return detail::open_collating<padded_batch>(
              in, run, self.name_, self.options_,
              [options = self.options_](const std::vector<S>& batch, const context& surroundings) {
                return detail::pad_sequences(detail::views_of(batch), options, surroundings);
              });
        });
  }

  // Throws error(invalid_argument) if no fields were given.
  pipeline<sample_batch> attach(const pipeline<std::vector<sample>>& in) const {
    detail::require_fields(fields_, name_);
    return detail::make_pipeline<sample_batch>(
        detail::node_facts::behind(in.last(), "pad", name_).on(stage_executor::cpu_pool),
        [in, self = *this](const detail::open_context& run) {
          return detail::open_collating<sample_batch>(
              in, run, self.name_, self.options_,
              [options = self.options_, fields = self.fields_](std::vector<sample>&& samples,
                                                               const context& surroundings) {
                return detail::pad_samples(std::move(samples), fields, options, surroundings);
              });
        });
  }

 private:
  pad_options options_;
  std::string name_;
  std::vector<std::string> fields_;
};

// Makes one tensor of a batch of sequences, each with as many elements behind its own as are
// missing to the longest. A sequence is a std::vector of numbers of 8 to 64 bits, or a tensor; of
// tensors, the first dimension is the length, and all others are the same. Throws
// error(invalid_argument) for a length that is not a multiple of `multiple_of`.
//
// A batch fails if it is empty, if its sequences do not fit together, if one is longer than
// `length`, or if `value` is none of their type. Works on the CPU pool, in the memory of the run.
//
// Batches of samples become a sample_batch. Of each field in `fields`, tensors are padded to the
// longest of the field, under the name of the field, and "<field>.lengths" has their lengths as i64
// [size()]; integers become i64 [size()], numbers f64 [size()]:
//
//   lade::bucket(length_of_tokens, {.size = 64}) | lade::pad({.fields = "tokens,weight"})
//
//   batch["tokens"], batch["tokens.lengths"], batch["weight"]
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
        detail::node_facts::behind(in.last(), "pack", name_).on(stage_executor::cpu_pool),
        [in, self = *this](const detail::open_context& run) {
          return detail::open_collating<packed_batch>(
              in, run, self.name_, self.options_,
              [](const std::vector<S>& batch, const context& surroundings) {
                return detail::pack_sequences(detail::views_of(batch), surroundings);
              });
        });
  }

 private:
  pack_options options_;
  std::string name_;
};

// The same without padding: the sequences of a batch one after the other, and where each begins.
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
          auto& counters = run.add_stage(self.name_);
          return fill_rows(in.open(run), self, run, counters);
        });
  }

 private:
  detail::node_facts facts(detail::node_ptr in) const {
    auto of_stage = detail::node_facts::behind(std::move(in), "pack_rows", name_)
                        .yielding(cardinality::group)
                        .reordering("pack_rows");
    if (!options_.split) return of_stage;
    return std::move(of_stage).refusing_state("pack_rows splits sequences");
  }

  template <class S>
  static async_generator<packed_batch> fill_rows(async_generator<S> in, pack_rows_stage self,
                                                 detail::open_context run,
                                                 detail::stage_counters& counters) {
    auto surroundings = run.run->surroundings();
    detail::work_for(counters, surroundings);
    detail::row_packer rows(self.options_, surroundings);
    std::exception_ptr failure;
    while (auto* sequence = co_await in.next().apart().deferring(failure)) {
      detail::bump(counters.in);
      if (run.run->failures().is_behind()) co_await run.run->failures().room();
      auto done = self.add(rows, *sequence, in.origin(), run, counters, failure);
      if (failure) break;
      if (!done) {
        co_await detail::consume(in.origin());
        continue;
      }
      for (auto& row : *done) {
        detail::count_out(counters, row.item);
        detail::with_lineage<packed_batch> yielded{row.origin, row.item};
        co_yield yielded;
      }
    }
    auto last = failure && run.rules().keeps_batches_whole ? std::vector<detail::row_packer::row>()
                                                           : rows.rest();
    for (auto& row : last) {
      detail::count_out(counters, row.item);
      detail::with_lineage<packed_batch> yielded{row.origin, row.item};
      co_yield yielded;
    }
    if (failure) std::rethrow_exception(failure);
  }

  // Nothing for a sequence that cannot be packed; then the failure too, unless it is dropped.
  template <class S>
  std::optional<std::vector<detail::row_packer::row>> add(detail::row_packer& rows,
                                                          const S& sequence, const lineage& origin,
                                                          const detail::open_context& run,
                                                          detail::stage_counters& counters,
                                                          std::exception_ptr& failure) const {
    try {
      return rows.add(detail::view_of(sequence), origin);
    } catch (...) {
      detail::failure_policy policy{.finally = options_.on_error, .budget = options_.error_budget};
      failure = run.failure(counters, policy, {}, origin);
      return std::nullopt;
    }
  }

  pack_rows_options options_;
  std::string name_;
};

// Packs sequences, as pad takes them, into rows of the same length: each into the first row with
// enough room. A row is given when it is full, or when it is the fullest and another would be more
// than `open_rows`; at the end those that are left.
//
// A sequence that is longer than a row fails or is split; with `split` there is no state, since its
// pieces are in different rows. A run that goes on from a state begins with empty rows: every
// sequence comes once, but beside others than without the interruption. Throws
// error(invalid_argument) that names the option for one that cannot work.
inline pack_rows_stage pack_rows(const pack_rows_options& options) {
  return pack_rows_stage(options);
}

}  // namespace lade
