#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/detail/concurrent.hpp>
#include <lade/detail/require.hpp>
#include <lade/error.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lade {

batch_stage::batch_stage(const batch_options& options) : options_(options) {
  detail::require_count("batch", "size", options.size, {.least = 1, .most = detail::most_in_batch});
}

tensor sample_batch::labels() const {
  lade::tensor labels(element_type::i64, {static_cast<std::int64_t>(size())});
  auto* next = labels.data<std::int64_t>();
  for (auto& each : samples_) *next++ = each.label();
  return labels;
}

namespace detail {

// Gives every sample its slot; begins a new batch when one has no slots left.
static async_generator<assigned> assign_slots(async_generator<sample> in, tensor_spec batch) {
  auto size = static_cast<std::size_t>(batch.shape[0]);
  std::shared_ptr<open_batch> current;
  std::size_t slot = size;
  while (auto item = co_await in.next()) {
    if (slot == size) {
      auto memory = co_await allocate(batch.bytes());
      current = std::make_shared<open_batch>(tensor(batch, std::move(memory)));
      slot = 0;
    }
    current->origin.merge(in.origin());
    assigned next(std::move(*item), current, slot++);
    current->assigned = slot;
    co_yield next;
  }
}

// Moves the sample in slot `from` to slot `to`, which is before it.
static void move_sample(const tensor& batch, std::size_t from, std::size_t to) {
  if (from == to) return;
  auto part = batch[0];
  auto bytes = part.spec().bytes();
  std::memcpy(batch.bytes() + to * bytes, batch.bytes() + from * bytes, bytes);
}

// The batch that is being put together, if any.
class gathered_batch {
 public:
  bool empty() const noexcept { return samples_.empty(); }
  bool holds_others_than(const assigned& item) const noexcept {
    return !empty() && item.batch() != batch_;
  }
  bool is_short_of(std::size_t size) const noexcept { return batch_ && batch_->assigned < size; }

  // `origin` has the positions of samples that were dropped before, too.
  void add(const assigned& item, const lineage& origin) {
    if (empty())
      positions_.merge(without(origin, origin_));
    else
      positions_.merge(origin);
    batch_ = item.batch();
    move_sample(batch_->data, item.slot_number(), samples_.size());
    samples_.push_back(item.sample());
  }

  // When all of its samples have come or were dropped. Leaves nothing for the next.
  sample_batch take() {
    positions_.merge(batch_->origin);
    return take_begun();
  }

  // At any time: only the samples that have come.
  sample_batch take_begun() {
    origin_ = std::exchange(positions_, {});
    auto used = batch_->data.slice(0, static_cast<std::int64_t>(samples_.size()));
    batch_.reset();
    return {std::move(used), std::exchange(samples_, {})};
  }

  // Of the batch that was taken last.
  const lineage& origin() const noexcept { return origin_; }

 private:
  std::shared_ptr<open_batch> batch_;
  std::vector<sample> samples_;
  lineage positions_;  // of what has come, also of batches of which nothing is left
  lineage origin_;
};

// Puts the samples of each batch together again. A batch of which samples were dropped closes
// the gaps and is delivered shorter, with their positions: the next begins behind them.
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

slot_batching::slot_batching(const batch_into_options& options, std::string name,
                             const tensor_spec& of_sample, slot_function writer)
    : options_(options), name_(std::move(name)), spec_(of_sample), writer_(std::move(writer)) {
  require_count(name_, "size", options.size, {.least = 1});
  require_concurrency(name_, options.concurrency);
  require_count(name_, "buffer", options.buffer.value_or(0));
  require_retry(name_, options.retry);
  require_budget(name_, options.error_budget);
  require_limits(name_, options.timeout, options.deadline);
  if (of_sample.elements() == 0)
    throw error(errc::invalid_argument, name_,
                "samples become tensors " + to_string(of_sample.shape) +
                    ", which have no elements: a batch needs samples of one size that is given");
  spec_.shape = spec_.shape.prepend(static_cast<std::int64_t>(options.size));
}

pipeline<sample_batch> slot_batching::attach(const pipeline<sample>& in) const {
  auto slots = make_pipeline<assigned>(in.length(), [in, spec = spec_](const opening& run) {
    return assign_slots(in.open(run.mixing_parts("batch_into")), spec);
  });
  return make_pipeline<sample_batch>(in.length() + 1, [slots, self = *this](const opening& run) {
    run.grouping(run.add_stage(self.name_), self.options_.size, self.options_.size);
    auto written = open_concurrent<assigned>(slots, run, self.name_, self.staff(run), self.writer_);
    return collect_slots(std::move(written), self.options_, run.keeps_batches_whole);
  });
}

concurrent_options slot_batching::staff(const opening& run) const {
  auto threads = (options_.pool ? *options_.pool : run.run->runtime().pool()).size();
  auto& tune = run.run->options().tune;
  auto workers = std::min(calls_at_a_time(options_.concurrency, tune, threads), threads);
  auto buffer = options_.buffer.value_or(options_.size);
  return {.slots = workers + buffer,
          .workers = workers,
          .pool = options_.pool,
          .policy = {.finally = options_.on_error,
                     .retry = options_.retry,
                     .budget = options_.error_budget},
          .limits = {options_.timeout, options_.deadline},
          .shares_cpus = options_.concurrency == automatic,
          .buffer = static_cast<unsigned>(buffer)};
}

}  // namespace detail
}  // namespace lade
