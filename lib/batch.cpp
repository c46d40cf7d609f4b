#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/this_context.hpp>

#include <cstring>
#include <utility>

namespace lade {

batch_stage::batch_stage(const batch_options& options) : options_(options) {
  detail::require_batch_size(options.size, "batch");
}

tensor sample_batch::labels() const {
  lade::tensor labels(element_type::i64, {static_cast<std::int64_t>(size())});
  auto* next = labels.data<std::int64_t>();
  for (auto& each : samples_) *next++ = each.label();
  return labels;
}

namespace detail {

void require_batch_size(std::size_t size, std::string_view stage) {
  if (size == 0) throw error(errc::invalid_argument, stage, "a batch size of 0");
}

async_generator<assigned> assign_slots(async_generator<sample> in, tensor_spec batch) {
  auto size = static_cast<std::size_t>(batch.shape[0]);
  std::shared_ptr<open_batch> current;
  std::size_t slot = size;
  while (auto item = co_await in.next()) {
    if (slot == size) {
      auto memory = allocate(co_await this_context(), batch.bytes());
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

// The batch of `samples` and their slots, and leaves both empty for the next.
static sample_batch take_first(std::shared_ptr<open_batch>& batch, std::vector<sample>& samples) {
  auto used = batch->data.slice(0, static_cast<std::int64_t>(samples.size()));
  batch.reset();
  return {std::move(used), std::exchange(samples, {})};
}

static lineage without(const lineage& all, const lineage& some) {
  lineage rest;
  for (auto& range : all.ranges())
    for (auto position = range.first; position <= range.last; ++position)
      if (!some.contains(position)) rest.add(position);
  return rest;
}

async_generator<sample_batch> collect_slots(async_generator<assigned> in,
                                            batch_into_options options) {
  std::shared_ptr<open_batch> current;
  std::vector<sample> samples;
  lineage origin;  // of the batch that was given last
  lineage lost;    // of batches after that of which nothing is left
  auto take = [&] {
    origin = std::exchange(lost, {});
    origin.merge(current->origin);
    return take_first(current, samples);
  };
  while (auto item = co_await in.next().apart()) {
    if (!samples.empty() && item->batch() != current) {
      auto full = take();
      with_lineage<sample_batch> yielded{origin, full};
      co_yield yielded;
    }
    if (samples.empty()) lost = without(in.origin(), origin);
    current = item->batch();
    move_sample(current->data, item->slot_number(), samples.size());
    samples.push_back(item->sample());
    if (item->slot_number() + 1 < options.size) continue;
    auto full = take();
    with_lineage<sample_batch> yielded{origin, full};
    co_yield yielded;
  }
  if (samples.empty() || (options.drop_last && current->assigned < options.size)) co_return;
  auto rest = take();
  with_lineage<sample_batch> yielded{origin, rest};
  co_yield yielded;
}

}  // namespace detail
}  // namespace lade
