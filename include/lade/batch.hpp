// batch, unbatch, batch_into: put items into batches, and split batches.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/autotune.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/common/shared_const.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/stages/calls.hpp>
#include <lade/detail/stages/concurrent_core.hpp>
#include <lade/hooks.hpp>
#include <lade/pipeline.hpp>
#include <lade/sample.hpp>
#include <lade/sample_batch.hpp>
#include <lade/tensor.hpp>
#include <lade/thread_pool.hpp>
#include <lade/waiting_items.hpp>

#include <algorithm>
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
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lade {

struct batch_options {
  // Items in a batch: 1 to 1,073,741,824. It may be larger than the input: memory is allocated for
  // at most 4,096 items in advance.
  std::size_t size = 1;

  bool drop_last = false;  // whether to drop a last batch that is not full
};

class batch_stage {
 public:
  explicit batch_stage(const batch_options& options);

  template <class T>
  pipeline<std::vector<T>> attach(const pipeline<T>& in) const {
    return detail::make_pipeline<std::vector<T>>(
        detail::node_facts::behind(in.last(), "batch")
            .in_groups(options_.size, options_.drop_last)
            .holding(options_.size)
            .mixing_parts("batch"),
        [in, options = options_](const detail::open_context& run) {
          auto& counters = run.add_stage();
          return collect(in.open(run), options, run.rules().fails_at_once(), counters);
        });
  }

 private:
  template <class T>
  static async_generator<std::vector<T>> collect(async_generator<T> in, batch_options options,
                                                 bool whole, detail::stage_counters& counters) {
    constexpr std::size_t most_reserved = 4096;  // a size may be larger than the input
    const auto reserved = std::min(options.size, most_reserved);
    std::vector<T> items;
    items.reserve(reserved);
    std::exception_ptr failure;
    while (auto item = co_await in.next().deferring(failure)) {
      detail::increment(counters.in);
      items.push_back(std::move(*item));
      if (items.size() < options.size) continue;
      detail::count_out(counters, items);
      co_yield items;
      items.clear();
      items.reserve(reserved);
    }
    if (!items.empty() && !options.drop_last && !(failure && whole)) {
      detail::count_out(counters, items);
      co_yield items;
    }
    if (failure) std::rethrow_exception(failure);
  }

  batch_options options_;
};

// Collects `size` items in a std::vector. If the input fails, the last batch is delivered short,
// before the failure. It is dropped if a later zip, combine or tee pairs batches, if a later stage
// splits them, or if one may end before its input, such as take or equal_steps. Throws
// error(invalid_argument) if the size is invalid.
inline batch_stage batch(const batch_options& options) { return batch_stage(options); }
inline batch_stage batch(std::size_t size) { return batch_stage({.size = size}); }

class unbatch_stage {
 public:
  template <class T>
  pipeline<T> attach(const pipeline<std::vector<T>>& in) const {
    auto facts = detail::node_facts::behind(in.last(), "unbatch").uncounted();
    facts =
        std::move(facts).yielding(cardinality::several).making_parts("unbatch", true).holding(1);
    return detail::make_pipeline<T>(
        std::move(facts), [in](const detail::open_context& run) { return apart(in.open(run)); });
  }
  template <class T>
  pipeline<T> attach(const pipeline<T>& in) const {
    static_assert(!std::movable<T>, "lade::unbatch: items must be std::vectors");
    return in;
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

// Splits vectors into their items. The lineage of an item has the positions of the whole vector.
inline unbatch_stage unbatch() noexcept { return {}; }

struct batch_into_options {
  std::size_t size = 1;    // samples in a batch: 1 to 1,048,576
  bool drop_last = false;  // whether to drop a last batch that is not full

  // Fields that also become tensors of the batch, separated by commas: "mask,boxes". An integer
  // field becomes i64 [size], a number f64 [size], a tensor [size, ...]. All samples must have each
  // field, with the same type and shape. A sample that does not fails.
  std::string_view fields = {};

  // The number of samples in flight: how many are decoded at a time, up to 1,048,576.
  // - 0: the number of threads of the CPU pool.
  // - `automatic`: all automatic stages of the run together use as many CPUs as the run may use for
  //   them; see autotune.hpp.
  unsigned concurrency = 0;

  // How many finished samples may wait for the next stage, up to 1,048,576. `size` if not given, so
  // that the next batch is ready when the last one has been used.
  std::optional<std::size_t> buffer = {};

  // Policy for samples that cannot be decoded; see failure.hpp.
  lade::retry retry = {};
  std::optional<lade::on_error> on_error = {};  // default: the run's
  lade::error_budget error_budget = {};

  // `timeout`: how long one call of the writer may take. `deadline`: how long all calls for one
  // sample may take. See map.hpp.
  std::chrono::nanoseconds timeout = {};
  std::chrono::nanoseconds deadline = {};

  // The pool on which samples are decoded; null: the CPU pool of the runtime. Must outlive the
  // runs.
  thread_pool* pool = nullptr;

  // The allocator of the batches' tensors, within the budget of the runtime. The CPU must be able
  // to write the memory. Null: the memory that a later stage requests, such as pinned memory for a
  // copy to a GPU; else the allocator of the runtime. For the lifetime see memory_resource.hpp.
  memory_resource* memory = nullptr;

  std::string_view name = {};  // name in statistics and errors; default: the writer's class
};

// An object that writes the tensor of a sample into a slot of a batch.
// - `spec()` returns the type and shape of the tensor of one sample.
// - `writer(sample, slot)` writes the tensor. It may take a `random` as third argument.
// - `memory_to_write(sample)`, optional: the bytes that a call allocates. The stage waits for that
//   memory before the call; see reserves_memory in buffer_pool.hpp.
// - `field()`, optional: the name of the tensor; "data" if it is missing or empty.
template <class W>
concept sample_writer =
    requires(const W& writer, const sample& in, const tensor& slot) {
      { writer.spec() } -> std::convertible_to<tensor_spec>;
    } && (std::invocable<const W&, const sample&, const tensor&> ||
          std::invocable<const W&, const sample&, const tensor&, random>);

// Several writers for batch_into, made by writers().
template <sample_writer... W>
class writer_list {
 public:
  explicit writer_list(W... all) : all_(std::move(all)...) {}
  const std::tuple<W...>& all() const noexcept { return all_; }

 private:
  std::tuple<W...> all_;
};

// Several writers for one batch_into. For every sample, each of them writes its own tensor, one
// after the other on one thread. All receive the same random numbers, so that images and their
// masks have the same crop.
//
//   lade::batch_into(lade::writers(decode_image(how), decode_mask(how, {.field = "png"})),
//                    {.size = 256})
template <sample_writer... W>
writer_list<W...> writers(W... all) {
  return writer_list<W...>(std::move(all)...);
}

namespace detail {

// The tensors of a batch: first one per writer, then one per stacked field.
struct batch_layout {
  struct written {
    std::string name;
    tensor_spec spec;  // type and shape of one sample's tensor
  };

  std::size_t size = 1;
  std::vector<written> writers;
  std::vector<std::string> fields;

  std::size_t tensors() const noexcept { return writers.size() + fields.size(); }
  const std::string& name(std::size_t i) const {
    return i < writers.size() ? writers[i].name : fields[i - writers.size()];
  }
};

// A batch whose slots are being assigned and written. The feeder assigns slots to samples in order
// and writes `tensors`, `assigned` and `origin`. Workers write to different slots, at the same
// time. The collecting generator reads `origin` when all slots of the batch have been assigned.
struct open_batch {
  explicit open_batch(std::shared_ptr<const batch_layout> of)
      : layout(std::move(of)), tensors(layout->tensors()) {}

  std::shared_ptr<const batch_layout> layout;

  // The tensor of a field is allocated for the first sample that has the field. Until then the
  // tensor has no dimensions.
  std::vector<tensor> tensors;
  std::atomic<std::size_t> assigned = 0;  // number of assigned slots, also of dropped samples
  lineage origin;                         // positions of the samples of all assigned slots
};

// A sample and the slot that is assigned to it.
class assigned {
 public:
  assigned(lade::sample from, std::shared_ptr<open_batch> batch, std::size_t slot)
      : sample_(std::move(from)), batch_(std::move(batch)), slot_(slot) {}

  const std::string& key() const noexcept { return sample_.key(); }
  const lade::sample& sample() const noexcept { return sample_; }
  const std::shared_ptr<open_batch>& batch() const noexcept { return batch_; }
  std::size_t slot_number() const noexcept { return slot_; }
  std::size_t bytes() const;  // bytes of the slot in all tensors
  tensor slot(std::size_t i) const { return batch_->tensors[i][static_cast<std::int64_t>(slot_)]; }

  // Copies the fields that are stacked into their tensors.
  void write_fields() const;

  // The same without the contents that are now in the tensors.
  assigned without_contents() &&;

 private:
  lade::sample sample_;
  std::shared_ptr<open_batch> batch_;
  std::size_t slot_;
};

// Hooks see the sample.
inline item_view view_of(const assigned& item) noexcept { return item_view(item.sample()); }

}  // namespace detail

// A sample that a writer has taken from its waiting_samples. The writer ends it by one call of
// done() or fail(), under the rules of taken_item.
class taken_sample {
 public:
  const sample& operator*() const { return taken_->sample(); }
  const sample* operator->() const { return &**this; }

  // The slot for the sample's tensor.
  tensor slot() const { return taken_->slot(0); }

  // The random numbers of this sample: the same as in a call for this sample alone.
  random draw() const { return taken_.draw(); }

  // Ends the sample: its tensor has been written.
  void done();

  // Ends the sample as failed, as if the writer had thrown `why` in a call for this sample alone.
  void fail(const std::exception_ptr& why) { taken_.fail(why); }

 private:
  friend class waiting_samples;

  explicit taken_sample(taken_item<detail::assigned, detail::assigned> taken) noexcept
      : taken_(std::move(taken)) {}

  taken_item<detail::assigned, detail::assigned> taken_;
};

// The samples that wait for a writer that takes several at a time. Such a writer has two forms,
// like the functions of waiting_items.hpp: the call of a sample_writer, and this one:
//
//   static constexpr unsigned items_at_a_time = 2;
//   void operator()(lade::waiting_samples& waiting) const;
class waiting_samples {
 public:
  explicit waiting_samples(waiting_items<detail::assigned, detail::assigned>& items) noexcept
      : items_(items) {}

  // Takes another sample, as waiting_items::next() takes an item.
  std::optional<taken_sample> next() {
    auto taken = items_.next();
    if (!taken) return std::nullopt;
    return taken_sample(*std::move(taken));
  }

 private:
  waiting_items<detail::assigned, detail::assigned>& items_;
};

namespace detail {

// Whether a writer also has the form for several samples.
template <class W>
concept writes_several = requires(const W& writer, waiting_samples& waiting) {
  { W::items_at_a_time } -> std::convertible_to<unsigned>;
  writer(waiting);
};

// The maximum number of samples that these writers take at a time. If there are several writers, 1.
template <class... W>
constexpr unsigned samples_at_a_time = 1;
template <class W>
  requires says_several<W>
constexpr unsigned samples_at_a_time<W> = [] {
  static_assert(writes_several<W>,
                "lade::batch_into: a writer with items_at_a_time must also take waiting_samples&, "
                "and be callable as const");
  return W::items_at_a_time;
}();

// The function of a batch_into: calls all writers for a sample.
template <class... W>
class slot_writer {
  template <class V>
  static constexpr bool takes_random =
      std::invocable<const V&, const sample&, const tensor&, random>;
  template <class V>
  static constexpr bool reserves =
      requires(const V& writer, const sample& in) { writer.memory_to_write(in); };

 public:
  static constexpr unsigned items_at_a_time = samples_at_a_time<W...>;

  explicit slot_writer(std::tuple<W...> writers) : writers_(std::move(writers)) {}

  std::vector<batch_layout::written> layout() const {
    std::vector<batch_layout::written> all;
    std::apply([&](const W&... each) { (all.push_back({name_of(each), each.spec()}), ...); },
               writers_);
    return all;
  }

  assigned operator()(assigned&& item, const random& draw) const
    requires(takes_random<W> || ...)
  {
    return write(std::move(item), [&](const auto& writer, const tensor& slot) {
      if constexpr (takes_random<std::remove_cvref_t<decltype(writer)>>)
        writer(item.sample(), slot, draw);
      else
        writer(item.sample(), slot);
    });
  }
  assigned operator()(assigned&& item) const
    requires(!(takes_random<W> || ...))
  {
    return write(std::move(item),
                 [&](const auto& writer, const tensor& slot) { writer(item.sample(), slot); });
  }

  void operator()(waiting_items<assigned, assigned>& items) const
    requires(items_at_a_time > 1)
  {
    waiting_samples waiting(items);
    std::get<0>(writers_)(waiting);
  }

  bool is_random() const {
    return std::apply([](const W&... each) { return (draws(each) || ...); }, writers_);
  }
  std::size_t memory_needed(const assigned& item) const
    requires(reserves<W> || ...)
  {
    return std::apply([&](const W&... each) { return (needed(each, item.sample()) + ...); },
                      writers_);
  }

 private:
  template <class V>
  static std::string name_of(const V& writer) {
    if constexpr (requires {
                    { writer.field() } -> std::convertible_to<std::string_view>;
                  }) {
      if (std::string_view name = writer.field(); !name.empty()) return std::string(name);
    }
    return "data";
  }

  template <class V>
  static bool draws([[maybe_unused]] const V& writer) {
    if constexpr (takes_random<V> && requires { writer.is_random(); }) return writer.is_random();
    return takes_random<V>;
  }

  template <class V>
  static std::size_t needed([[maybe_unused]] const V& writer, [[maybe_unused]] const sample& in) {
    if constexpr (reserves<V>) return writer.memory_to_write(in);
    return 0;
  }

  template <class Call>
  assigned write(assigned&& item, const Call& call) const {
    std::size_t i = 0;
    std::apply([&](const W&... each) { (call(each, item.slot(i++)), ...); }, writers_);
    item.write_fields();
    return std::move(item).without_contents();
  }

  std::tuple<W...> writers_;
};

using slot_function = counted_ptr<const stage_function<plain_calls<assigned, assigned>>>;

// A batch_into, independent of the types of its writers.
class slot_batching {
 public:
  // Throws error(invalid_argument) that names the stage and the option if an option is invalid.
  // Throws it also if the tensor of a writer has no elements, or if two tensors have the same name.
  slot_batching(const batch_into_options& options, std::string name,
                std::vector<batch_layout::written> written, slot_function writer);

  pipeline<sample_batch> attach(const pipeline<sample>& in) const;

 private:
  node_facts facts(node_ptr in) const;
  failure_policy policy() const;
  time_limits limits() const { return {options_.timeout, options_.deadline}; }
  std::optional<std::uint64_t> most_held() const;
  concurrent_options options_for(const open_context& run) const;

  batch_into_options options_;
  std::shared_ptr<memory_resource> memory_;  // share in options_.memory, if it is shared
  std::string name_;
  std::shared_ptr<const batch_layout> layout_;
  slot_function writer_;
};

}  // namespace detail

template <sample_writer... W>
class batch_into_stage {
 public:
  batch_into_stage(std::tuple<W...> writers, const batch_into_options& options)
      : batch_into_stage(detail::shared_const(detail::slot_writer<W...>(std::move(writers))),
                         options) {}

  pipeline<sample_batch> attach(const pipeline<sample>& in) const { return stage_.attach(in); }

 private:
  batch_into_stage(const detail::shared_const<detail::slot_writer<W...>>& writer,
                   const batch_into_options& options)
      : stage_(options,
               detail::stage_name<std::tuple_element_t<0, std::tuple<W...>>>(options.name,
                                                                             "batch_into"),
               writer->layout(), detail::function_for<detail::assigned>(writer)) {}

  detail::slot_batching stage_;
};

// Decodes samples directly into the slots of batch tensors. It allocates no tensor for a single
// sample and copies nothing. `writer` runs on the CPU pool, for several samples at a time. Batches,
// and the samples in them, keep the order of the input.
//
// A batch with skipped samples is delivered short, not refilled. So the number of batches does not
// depend on which samples fail, unless all samples of a batch are skipped.
//
// Throws error(invalid_argument) that names the option if an option is invalid. Throws it also if
// the spec of the writer has no elements, such as that of a decode_image without a width and a
// height.
template <sample_writer W>
batch_into_stage<W> batch_into(W writer, const batch_into_options& options) {
  return {std::tuple<W>(std::move(writer)), options};
}

// Reports at compile time that W is not a sample_writer.
template <class W>
  requires(!sample_writer<W>)
void batch_into(const W&, const batch_into_options&) {
  static_assert(sample_writer<W>,
                "lade::batch_into: a writer must have spec(), which returns a tensor_spec, and be "
                "callable as const with a sample and a tensor: not a mutable lambda");
}

// The same with several writers, made by writers(): a batch has one tensor per writer. Throws
// error(invalid_argument) if two tensors have the same name.
template <sample_writer... W>
batch_into_stage<W...> batch_into(const writer_list<W...>& writers,
                                  const batch_into_options& options) {
  static_assert(sizeof...(W) > 0, "lade::batch_into: there must be a writer");
  return {writers.all(), options};
}

}  // namespace lade
