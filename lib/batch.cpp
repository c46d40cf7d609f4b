#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/detail/require.hpp>
#include <lade/error.hpp>
#include <lade/this_context.hpp>

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

void require_batch_into(std::string_view stage, const batch_into_options& options,
                        const tensor_spec& of_sample) {
  require_count(stage, "size", options.size, {.least = 1});
  require_concurrency(stage, options.concurrency);
  require_count(stage, "buffer", options.buffer.value_or(0));
  require_retry(stage, options.retry);
  require_budget(stage, options.error_budget);
  require_limits(stage, options.timeout, options.deadline);
  if (of_sample.elements() == 0)
    throw error(errc::invalid_argument, stage,
                "samples become tensors " + to_string(of_sample.shape) +
                    ", which have no elements: a batch needs samples of one size that is given");
}

async_generator<assigned> assign_slots(async_generator<sample> in, tensor_spec batch) {
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

static lineage without(const lineage& all, const lineage& some) {
  lineage rest;
  for (auto& range : all.ranges())
    for (auto position = range.first; position <= range.last; ++position)
      if (!some.contains(position)) rest.add(position);
  return rest;
}

// The batch that is being put together, if any.
class gathered_batch {
 public:
  bool empty() const noexcept { return samples_.empty(); }
  bool holds_others_than(const assigned& item) const noexcept {
    return !empty() && item.batch() != batch_;
  }
  bool is_short_of(std::size_t size) const noexcept { return batch_->assigned < size; }

  void add(const assigned& item, const lineage& origin) {
    if (empty()) lost_ = without(origin, origin_);
    batch_ = item.batch();
    move_sample(batch_->data, item.slot_number(), samples_.size());
    samples_.push_back(item.sample());
  }

  // Leaves nothing for the next.
  sample_batch take() {
    origin_ = std::exchange(lost_, {});
    origin_.merge(batch_->origin);
    auto used = batch_->data.slice(0, static_cast<std::int64_t>(samples_.size()));
    batch_.reset();
    return {std::move(used), std::exchange(samples_, {})};
  }

  // Of the batch that was taken last.
  const lineage& origin() const noexcept { return origin_; }

 private:
  std::shared_ptr<open_batch> batch_;
  std::vector<sample> samples_;
  lineage origin_;
  lineage lost_;  // of the batches after that one of which nothing is left
};

async_generator<sample_batch> collect_slots(async_generator<assigned> in,
                                            batch_into_options options) {
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
  if (!gathered.empty() && !(options.drop_last && gathered.is_short_of(options.size))) {
    auto rest = gathered.take();
    with_lineage<sample_batch> yielded{gathered.origin(), rest};
    co_yield yielded;
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail
}  // namespace lade
