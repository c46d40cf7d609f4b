#include "check.hpp"
#include "on_cpu_pool.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/decode_jpegs.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace lade::cuda {

static std::vector<jpeg_source> sources_of(const std::vector<sample>& samples) {
  std::vector<jpeg_source> sources;
  sources.reserve(samples.size());
  for (const auto& each : samples) {
    if (!each.has_data())
      throw error(errc::invalid_argument, "decode " + each.name(), "it has not been read");
    sources.emplace_back(each.data(), each.name());
  }
  return sources;
}

static std::vector<std::int64_t> labels_of(const std::vector<sample>& samples) {
  std::vector<std::int64_t> labels;
  labels.reserve(samples.size());
  for (const auto& each : samples) labels.push_back(each.label());
  if (std::ranges::all_of(labels, [](auto label) { return label == sample::no_label; }))
    labels.clear();
  return labels;
}

// The labels must live until the stream of the memory has passed the copy.
static tensor queue_labels(const std::vector<std::int64_t>& labels, const device_block& memory) {
  const tensor_spec spec{element_type::i64, {static_cast<std::int64_t>(labels.size())}};
  tensor copied(spec, memory.slice(0, spec.bytes()));
  const auto& on = memory.home();
  current_device current(on.on());
  check(api().memcpy_async(copied.bytes(), labels.data(), spec.bytes(), cudaMemcpyHostToDevice,
                           on.handle()),
        "copy labels to a GPU");
  return copied;
}

// Where the event cannot be recorded or awaited, the copy is waited for.
static task<event> await_copy(stream copying) {
  try {
    auto copied = copying.record();
    co_await copied.uninterruptible();
    co_return copied;
  } catch (...) {
    (void)api().stream_synchronize(copying.handle());
    throw;
  }
}

task<device_batch> decode_jpegs::decode(decode_jpegs self, std::vector<sample> samples) {
  jpeg_decoder::view_of views;
  if (self.views_)
    views = [&](std::size_t index, int width, int height) {
      return self.views_(samples[index], width, height);
    };
  auto sources = sources_of(samples);
  auto resized = co_await self.decoder_.decode(std::move(sources), self.to_, std::move(views));
  for (const auto& failure : resized.failures())
    if (failure) std::rethrow_exception(failure);
  std::vector<device_block> blocks{resized.memory()};
  std::vector<named_tensor> tensors{named_tensor("data", resized.images())};
  const auto numbers = labels_of(samples);
  std::optional<tensor> labels;
  if (!numbers.empty()) {
    blocks.emplace_back(self.decoder_.memory(), numbers.size() * sizeof(std::int64_t),
                        self.copying_labels_);
    labels = queue_labels(numbers, blocks.back());
  }
  auto ready = co_await await_copy(self.copying_labels_);
  for (auto& each : samples) each = std::move(each).without_data();
  co_return device_batch(std::move(tensors), std::move(samples), std::move(labels),
                         std::move(blocks), std::move(ready));
}

task<device_batch> decode_jpegs::operator()(std::vector<sample> samples) const {
  return on_cpu_pool(decode(*this, std::move(samples)));
}

}  // namespace lade::cuda
