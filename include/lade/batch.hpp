// batch, unbatch, batch_into: items together, and apart again.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/detail/calls.hpp>
#include <lade/detail/concurrent_core.hpp>
#include <lade/detail/counted.hpp>
#include <lade/detail/items.hpp>
#include <lade/detail/shared_const.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>
#include <lade/thread_pool.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

struct batch_options {
  std::size_t size = 1;    // 1 to 1,073,741,824
  bool drop_last = false;  // leaves out a last batch that is not full
};

class batch_stage {
 public:
  explicit batch_stage(const batch_options& options);

  template <class T>
  pipeline<std::vector<T>> attach(const pipeline<T>& in) const {
    return detail::make_pipeline<std::vector<T>>(
        in.length() + 1, [in, options = options_](const detail::opening& run) {
          auto& counters = run.add_stage("batch");
          run.grouping(counters, options.size, options.size);
          return collect(in.open(run.mixing_parts("batch")), options, run.keeps_batches_whole,
                         counters);
        });
  }

 private:
  template <class T>
  static async_generator<std::vector<T>> collect(async_generator<T> in, batch_options options,
                                                 bool whole, detail::stage_counters& counters) {
    std::vector<T> items;
    items.reserve(options.size);
    std::exception_ptr failure;
    while (auto item = co_await in.next().deferring(failure)) {
      detail::bump(counters.in);
      items.push_back(std::move(*item));
      if (items.size() < options.size) continue;
      detail::count_out(counters, items);
      co_yield items;
      items.clear();
      items.reserve(options.size);
    }
    if (!items.empty() && !options.drop_last && !(failure && whole)) {
      detail::count_out(counters, items);
      co_yield items;
    }
    if (failure) std::rethrow_exception(failure);
  }

  batch_options options_;
};

// Puts `size` items into a std::vector. Of a run that fails, the last batch is short; it is left
// out where a later zip, combine or tee pairs batches, or a later stage takes them apart. Throws
// error(invalid_argument) for a size that cannot work.
inline batch_stage batch(const batch_options& options) { return batch_stage(options); }
inline batch_stage batch(std::size_t size) { return batch_stage({.size = size}); }

class unbatch_stage {
 public:
  template <class T>
  pipeline<T> attach(const pipeline<std::vector<T>>& in) const {
    return detail::make_pipeline<T>(in.length() + 1, [in](const detail::opening& run) {
      return apart(in.open(run.making_parts("unbatch", true)));
    });
  }

 private:
  template <class T>
  static async_generator<T> apart(async_generator<std::vector<T>> in) {
    while (auto items = co_await in.next()) {
      detail::part_lineage origins(in.origin(), items->size());
      for (auto& item : *items) {
        detail::with_lineage<T> yielded{origins.next(), item};
        co_yield yielded;
      }
    }
  }
};

// Takes vectors apart. Each item has the positions of its whole vector.
inline unbatch_stage unbatch() noexcept { return {}; }

// Samples as one tensor: what a trainer gets.
class sample_batch {
 public:
  sample_batch(lade::tensor data, std::vector<sample> samples)
      : tensor_(std::move(data)), samples_(std::move(samples)) {}

  // [size(), ...]: the samples' tensors, one after the other.
  const lade::tensor& tensor() const noexcept { return tensor_; }
  std::size_t size() const noexcept { return samples_.size(); }

  // Keys and labels, without the bytes.
  const std::vector<sample>& samples() const noexcept { return samples_; }

  // The labels as i64 [size()].
  lade::tensor labels() const;

 private:
  lade::tensor tensor_;
  std::vector<sample> samples_;
};

struct batch_into_options {
  std::size_t size = 1;    // samples in a batch: 1 to 1,048,576
  bool drop_last = false;  // leaves out a last batch that is not full

  // How many samples are decoded at a time, up to 1,048,576; 0: as many as the CPU pool has
  // threads; `automatic`: as many as the run may use CPUs for its automatic stages, all together
  // (see autotune.hpp).
  unsigned concurrency = 0;

  // How many samples may be finished before the next stage asks, up to 1,048,576; `size` if not
  // given, so that the next batch is ready when the last one has been used.
  std::optional<std::size_t> buffer = {};

  // What becomes of samples that cannot be decoded; see failure.hpp.
  lade::retry retry = {};
  std::optional<lade::on_error> on_error = {};  // the run's if not given
  lade::error_budget error_budget = {};

  // How long one call of the writer may take, and all of them for one sample; see map.hpp.
  std::chrono::nanoseconds timeout = {};
  std::chrono::nanoseconds deadline = {};

  // Where samples are decoded, if not on the CPU pool of the runtime. Must outlive the runs.
  thread_pool* pool = nullptr;

  std::string_view name = {};  // in statistics and errors; that of its class if not given
};

// Writes a sample's tensor: `spec()` says what it becomes, a call writes it to a slot of a batch.
// The call may take a `random` as third argument. If there is a `memory_to_write(in)`, the stage
// waits for so much memory before a call; see tells_memory in buffer_pool.hpp.
template <class W>
concept sample_writer =
    requires(const W& writer, const sample& in, const tensor& slot) {
      { writer.spec() } -> std::convertible_to<tensor_spec>;
    } && (std::invocable<const W&, const sample&, const tensor&> ||
          std::invocable<const W&, const sample&, const tensor&, random>);

namespace detail {

// A batch that is being written.
struct open_batch {
  explicit open_batch(tensor memory) : data(std::move(memory)) {}

  tensor data;
  std::atomic<std::size_t> assigned = 0;  // slots; samples of some of them may be dropped
  lineage origin;                         // of these; read when no more are to come
};

// A sample and the slot it is to be written to.
class assigned {
 public:
  assigned(lade::sample from, std::shared_ptr<open_batch> batch, std::size_t slot)
      : sample_(std::move(from)), batch_(std::move(batch)), slot_(slot) {}

  const std::string& key() const noexcept { return sample_.key(); }
  const lade::sample& sample() const noexcept { return sample_; }
  const std::shared_ptr<open_batch>& batch() const noexcept { return batch_; }
  std::size_t slot_number() const noexcept { return slot_; }
  std::size_t bytes() const { return slot().spec().bytes(); }  // that were written
  tensor slot() const { return batch_->data[static_cast<std::int64_t>(slot_)]; }

  // The same without the sample's bytes, which have been decoded.
  assigned without_data() && {
    sample_ = std::move(sample_).without_data();
    return std::move(*this);
  }

 private:
  lade::sample sample_;
  std::shared_ptr<open_batch> batch_;
  std::size_t slot_;
};

// The function of a stage that writes samples into slots.
template <class W>
class slot_writer {
  static constexpr bool takes_random =
      std::invocable<const W&, const sample&, const tensor&, random>;

 public:
  explicit slot_writer(W writer) : writer_(std::move(writer)) {}

  tensor_spec spec() const { return writer_.spec(); }

  assigned operator()(assigned&& item, const random& draw) const
    requires takes_random
  {
    writer_(item.sample(), item.slot(), draw);
    return std::move(item).without_data();
  }
  assigned operator()(assigned&& item) const
    requires(!takes_random)
  {
    writer_(item.sample(), item.slot());
    return std::move(item).without_data();
  }

  bool is_random() const
    requires requires(const W& writer) { writer.is_random(); }
  {
    return writer_.is_random();
  }
  std::size_t memory_needed(const assigned& item) const
    requires requires(const W& writer, const sample& in) { writer.memory_to_write(in); }
  {
    return writer_.memory_to_write(item.sample());
  }

 private:
  W writer_;
};

using slot_function = counted_ptr<const stage_function<plain_calls<assigned, assigned>>>;

// A batch_into, whatever its writer.
class slot_batching {
 public:
  // Throws error(invalid_argument) that names the stage and the option that cannot work, or if what
  // the writer makes has no size.
  slot_batching(const batch_into_options& options, std::string name, const tensor_spec& of_sample,
                slot_function writer);

  pipeline<sample_batch> attach(const pipeline<sample>& in) const;

 private:
  concurrent_options staff(const opening& run) const;

  batch_into_options options_;
  std::string name_;
  tensor_spec spec_;  // of a batch
  slot_function writer_;
};

}  // namespace detail

template <sample_writer W>
class batch_into_stage {
 public:
  batch_into_stage(W writer, const batch_into_options& options)
      : batch_into_stage(detail::shared_const(detail::slot_writer<W>(std::move(writer))), options) {
  }

  pipeline<sample_batch> attach(const pipeline<sample>& in) const { return stage_.attach(in); }

 private:
  batch_into_stage(const detail::shared_const<detail::slot_writer<W>>& writer,
                   const batch_into_options& options)
      : stage_(options, detail::stage_name<W>(options.name, "batch_into"), writer->spec(),
               detail::function_for<detail::assigned>(writer)) {}

  detail::slot_batching stage_;
};

// Decodes samples straight into the slots of batch tensors: no tensor of a single sample is made
// and nothing is copied. `writer` runs on the CPU pool, several samples at a time; batches and the
// samples in them keep the order of the input.
//
// A batch of which samples were skipped is delivered with fewer samples, so that the number of
// batches does not depend on the data, unless all samples of a batch are skipped. Throws
// error(invalid_argument) that names the option for one that cannot work, and for a writer whose
// spec has no elements, such as a decode_image without a width and a height.
template <sample_writer W>
batch_into_stage<W> batch_into(W writer, const batch_into_options& options) {
  return {std::move(writer), options};
}

}  // namespace lade
