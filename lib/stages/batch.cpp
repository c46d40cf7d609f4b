#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/detail/data/stacked_fields.hpp>
#include <lade/detail/stages/concurrent.hpp>
#include <lade/error.hpp>
#include <lade/support/require.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace lade {

batch_stage::batch_stage(const batch_options& options) : options_(options) {
  support::require_count("batch", "size", options.size,
                         {.least = 1, .most = support::most_in_batch});
}

void taken_sample::done() {
  std::exception_ptr failure;
  try {
    taken_->write_fields();
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure)
    taken_.fail(failure);
  else
    taken_.give(std::move(*taken_).without_contents());
}

namespace detail {

std::size_t assigned::bytes() const {
  std::size_t sum = 0;
  for (auto& each : batch_->tensors)
    if (each.rank() > 0) sum += each.spec().bytes() / batch_->layout->size;
  return sum;
}

void assigned::write_fields() const {
  auto& layout = *batch_->layout;
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    auto& name = layout.fields[i];
    stackable_field(sample_, name);  // throws if the sample lacks the field and so may have no slot
    write_field(sample_, name, slot(layout.writers.size() + i));
  }
}

assigned assigned::without_contents() && {
  sample_ = lade::detail::without_contents(std::move(sample_), batch_->layout->fields);
  return std::move(*this);
}

static tensor_spec spec_of_batch(const tensor_spec& of_sample, std::size_t size) {
  return {of_sample.type, of_sample.shape.prepend(static_cast<std::int64_t>(size))};
}

static task<tensor> allocate_slots(tensor_spec of_sample, std::size_t size, memory_resource* from) {
  auto spec = spec_of_batch(of_sample, size);
  auto allocating = from ? allocate(spec.bytes(), *from) : allocate(spec.bytes());
  auto memory = co_await std::move(allocating);
  co_return tensor(spec, std::move(memory));
}

// Allocates the tensors of the fields that no earlier sample of the batch has.
static task<> make_field_slots(open_batch& batch, const sample& first, memory_resource* from) {
  auto& layout = *batch.layout;
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    auto& slots = batch.tensors[layout.writers.size() + i];
    bool is_made = slots.rank() > 0;
    auto* value = is_made ? nullptr : first.find_field(layout.fields[i]);
    auto spec = value ? stacked_spec(*value) : std::nullopt;
    if (spec) slots = co_await allocate_slots(*spec, layout.size, from);
  }
}

static task<std::shared_ptr<open_batch>> begin_batch(std::shared_ptr<const batch_layout> layout,
                                                     memory_resource* from) {
  auto batch = std::make_shared<open_batch>(layout);
  for (std::size_t i = 0; i < layout->writers.size(); ++i)
    batch->tensors[i] = co_await allocate_slots(layout->writers[i].spec, layout->size, from);
  co_return batch;
}

// Assigns a slot to every sample, and starts a new batch when all slots are assigned.
static async_generator<assigned> assign_slots(async_generator<sample> in,
                                              std::shared_ptr<const batch_layout> layout,
                                              std::shared_ptr<memory_resource> from) {
  std::shared_ptr<open_batch> current;
  std::size_t slot = layout->size;
  while (auto item = co_await in.next()) {
    if (slot == layout->size) {
      current = co_await begin_batch(layout, from.get());
      slot = 0;
    }
    if (!layout->fields.empty()) co_await make_field_slots(*current, *item, from.get());
    current->origin.merge(in.origin());
    assigned next(std::move(*item), current, slot++);
    current->assigned = slot;
    co_yield next;
  }
}

// Moves the contents of slot `from` to the earlier slot `to`.
static void move_sample(const tensor& batch, std::size_t from, std::size_t to) {
  auto part = batch[0];
  auto bytes = part.spec().bytes();
  std::memcpy(batch.bytes() + to * bytes, batch.bytes() + from * bytes, bytes);
}

// The batch that is being collected, if any. Its samples fill its slots without gaps: a sample
// behind dropped ones is moved forward.
class gathered_batch {
 public:
  bool empty() const noexcept { return samples_.empty(); }
  bool holds_others_than(const assigned& item) const noexcept {
    return !empty() && item.batch() != batch_;
  }
  bool is_short_of(std::size_t size) const noexcept { return batch_ && batch_->assigned < size; }

  // `origin`: may include the positions of samples that were dropped before this one.
  void add(const assigned& item, const lineage& origin) {
    if (empty())
      positions_.merge(without(origin, origin_));
    else
      positions_.merge(origin);
    batch_ = item.batch();
    if (item.slot_number() != samples_.size())
      for (auto& each : batch_->tensors) move_sample(each, item.slot_number(), samples_.size());
    samples_.push_back(item.sample());
  }

  // Takes the batch once every sample has been added or dropped. Its lineage includes all of them.
  sample_batch take() {
    positions_.merge(batch_->origin);
    return take_begun();
  }

  // Takes the batch at any time, with the samples added so far.
  sample_batch take_begun() {
    origin_ = std::exchange(positions_, {});
    auto batch = std::exchange(batch_, nullptr);
    auto used = static_cast<std::int64_t>(samples_.size());
    std::vector<named_tensor> tensors;
    for (std::size_t i = 0; i < batch->tensors.size(); ++i)
      tensors.emplace_back(batch->layout->name(i), batch->tensors[i].slice(0, used));
    return {std::move(tensors), std::exchange(samples_, {})};
  }

  // The lineage of the last batch taken.
  const lineage& origin() const noexcept { return origin_; }

 private:
  std::shared_ptr<open_batch> batch_;
  std::vector<sample> samples_;
  lineage positions_;  // of all samples added, and of batches whose samples were all dropped
  lineage origin_;
};

// Collects the samples of each batch. A batch with dropped samples is delivered short, not
// refilled, and its lineage includes their positions. So the next batch starts behind them.
static async_generator<sample_batch> collect_slots(async_generator<assigned> in,
                                                   batch_into_options options, bool whole) {
  gathered_batch gathered;
  std::exception_ptr failure;
  while (auto item = co_await in.next().apart().deferring(failure)) {
    if (gathered.holds_others_than(*item)) {
      auto full = gathered.take();
      with_lineage<sample_batch> yielded{gathered.origin(), full};
      co_yield yielded;
    }
    gathered.add(*item, in.origin());
    if (item->slot_number() + 1 < options.size) continue;
    auto full = gathered.take();
    with_lineage<sample_batch> yielded{gathered.origin(), full};
    co_yield yielded;
  }
  // After a failure, samples of the batch may still be assigned.
  bool left_out = failure ? options.drop_last || whole
                          : options.drop_last && gathered.is_short_of(options.size);
  if (!gathered.empty() && !left_out) {
    auto rest = failure ? gathered.take_begun() : gathered.take();
    with_lineage<sample_batch> yielded{gathered.origin(), rest};
    co_yield yielded;
  }
  if (failure) std::rethrow_exception(failure);
}

static void require_elements(const batch_layout::written& writer, const std::string& stage) {
  if (writer.spec.elements() > 0) return;
  throw error(
      errc::invalid_argument, stage,
      fmt::format("samples become tensors {}, which have no elements: a batch needs samples of one "
                  "known size",
                  to_string(writer.spec.shape)));
}

static void require_different_names(const batch_layout& layout, const std::string& stage) {
  for (std::size_t i = 0; i < layout.tensors(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (layout.name(i) == layout.name(j))
        throw error(errc::invalid_argument, stage,
                    "two tensors of a batch would be called " + layout.name(i));
}

slot_batching::slot_batching(const batch_into_options& options, std::string name,
                             std::vector<batch_layout::written> written, slot_function writer)
    : options_(options),
      memory_(share_of(options.memory)),
      name_(std::move(name)),
      writer_(std::move(writer)) {
  support::require_count(name_, "size", options.size, {.least = 1});
  require_concurrency(name_, options.concurrency);
  support::require_count(name_, "buffer", options.buffer.value_or(0));
  require_retry(name_, options.retry);
  require_budget(name_, options.error_budget, options.on_error);
  require_limits(name_, options.timeout, options.deadline);
  require_host_accessible(name_, options.memory);
  batch_layout layout{options.size, std::move(written), field_names(options.fields, name_)};
  for (auto& each : layout.writers) {
    require_elements(each, name_);
    spec_of_batch(each.spec, layout.size).bytes();  // throws if they are too many
  }
  require_different_names(layout, name_);
  layout_ = std::make_shared<const batch_layout>(std::move(layout));
}

pipeline<sample_batch> slot_batching::attach(const pipeline<sample>& in) const {
  auto slots = make_pipeline<assigned>(
      node_facts::part_behind(in.last()),
      [in, layout = layout_, memory = memory_](const open_context& run) {
        return assign_slots(in.open(run), layout,
                            memory ? memory : share_of(run.at->wanted_memory()));
      });
  return make_pipeline<sample_batch>(
      facts(slots.last()), [slots, self = *this](const open_context& run) {
        auto written = open_concurrent<assigned>(slots, run, self.options_for(run), self.writer_);
        return collect_slots(std::move(written), self.options_, run.rules().fails_at_once());
      });
}

// The samples in the slots, and those of the batch that is collected. The sample that completes the
// batch still has its slot.
std::optional<std::uint64_t> slot_batching::most_held() const {
  if (options_.concurrency == 0 || options_.concurrency == automatic) return std::nullopt;
  const concurrent_options options{
      .slots = options_.concurrency + options_.buffer.value_or(options_.size),
      .workers = options_.concurrency};
  return options.for_items(writer_->items_at_a_time).slots + options_.size - 1;
}

node_facts slot_batching::facts(node_ptr in) const {
  auto facts = node_facts::behind(std::move(in), "batch_into", name_)
                   .on(options_.pool)
                   .in_groups(options_.size, options_.drop_last)
                   .holding(most_held())
                   .mixing_parts("batch_into");
  if (options_.concurrency == automatic)
    facts = std::move(facts).with("concurrency", "automatic");
  else if (options_.concurrency > 0)
    facts = std::move(facts).with("concurrency", options_.concurrency);
  if (options_.buffer) facts = std::move(facts).with("buffer", *options_.buffer);
  return std::move(facts).with(policy(), limits());
}

failure_policy slot_batching::policy() const {
  return {.finally = options_.on_error, .retry = options_.retry, .budget = options_.error_budget};
}

concurrent_options slot_batching::options_for(const open_context& run) const {
  auto threads = (options_.pool ? *options_.pool : run.run->runtime().pool()).size();
  auto& tune = run.run->options().tune;
  auto workers = std::min(calls_at_a_time(options_.concurrency, tune, threads), threads);
  auto buffer = options_.buffer.value_or(options_.size);
  return {.slots = workers + buffer,
          .workers = workers,
          .pool = options_.pool,
          .policy = policy(),
          .limits = limits(),
          .shares_cpus = options_.concurrency == automatic,
          .buffer = static_cast<unsigned>(buffer)};
}

}  // namespace detail
}  // namespace lade
