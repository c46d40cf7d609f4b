#include "label_copy.hpp"

#include "transfers.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/this_context.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lade::cuda {

bool have_labels(const std::vector<sample>& samples) noexcept {
  return std::ranges::any_of(samples,
                             [](const sample& each) { return each.label() != sample::no_label; });
}

void write_labels(const std::vector<sample>& samples, std::byte* to) noexcept {
  for (const auto& each : samples) {
    const std::int64_t label = each.label();
    std::memcpy(to, &label, sizeof label);
    to += sizeof label;
  }
}

static event queue_label_copy(transfers& in, const buffer& labels, const tensor& into,
                              const stream& on) {
  queued_copies copies(in, on, {labels});
  copies.copy_to_device(into.bytes(), labels.data(), into.spec().bytes());
  return copies.finish();
}

task<std::optional<tensor>> copy_labels(const std::vector<sample>& samples, device_resource& memory,
                                        const stream& on, std::vector<device_block>& blocks) {
  if (!have_labels(samples)) co_return std::nullopt;
  const auto& current = co_await this_context_reference();
  const tensor_spec spec{element_type::i64, {static_cast<std::int64_t>(samples.size())}};
  const auto bytes = co_await allocate(spec.bytes());
  write_labels(samples, bytes.data());
  blocks.emplace_back(memory, spec.bytes(), on);
  tensor labels(spec, blocks.back().slice(0, spec.bytes()));
  const auto copied = queue_label_copy(transfers::of(*current.runtime), bytes, labels, on);
  co_await copied;
  co_return std::optional<tensor>(std::move(labels));
}

}  // namespace lade::cuda
