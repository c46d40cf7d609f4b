#include "check.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/device_batch.hpp>
#include <lade/error.hpp>

#include <mutex>
#include <utility>

namespace lade::cuda {

// `placements`: what the first wait_on() copies to tensors of fixed addresses. `placed`: an event
// behind these copies.
struct device_batch::contents {
  contents(sample_batch of_tensors, std::optional<lade::tensor> of_labels,
           std::vector<device_block> memory, event written, std::vector<detail::placement> copies)
      : batch(std::move(of_tensors)),
        labels(std::move(of_labels)),
        blocks(std::move(memory)),
        ready(std::move(written)),
        placements(std::move(copies)) {}

  void place(const stream& user) {
    if (placements.empty()) return;
    std::lock_guard lock(mutex);
    if (placed) return user.wait(*placed);
    current_device current(user.on());
    for (auto& each : placements)
      check(api().memcpy_async(each.to.bytes(), each.from.bytes(), each.from.spec().bytes(),
                               cudaMemcpyDeviceToDevice, user.handle()),
            "copy a batch to fixed addresses");
    placed = user.record();
  }

  const sample_batch batch;
  const std::optional<lade::tensor> labels;
  const std::vector<device_block> blocks;
  const event ready;
  const std::vector<detail::placement> placements;
  std::mutex mutex;
  std::optional<event> placed;  // guarded by the mutex
};

device_batch::device_batch(std::vector<named_tensor> tensors, std::vector<sample> samples,
                           std::optional<lade::tensor> labels, std::vector<device_block> blocks,
                           event ready)
    : device_batch(std::move(tensors), std::move(samples), std::move(labels), std::move(blocks),
                   std::move(ready), {}) {}

device_batch::device_batch(std::vector<named_tensor> tensors, std::vector<sample> samples,
                           std::optional<lade::tensor> labels, std::vector<device_block> blocks,
                           event ready, std::vector<detail::placement> placements)
    : contents_(std::make_shared<contents>(sample_batch(std::move(tensors), std::move(samples)),
                                           std::move(labels), std::move(blocks), std::move(ready),
                                           std::move(placements))) {}

std::size_t device_batch::size() const noexcept { return contents_->batch.size(); }
const tensor& device_batch::tensor() const noexcept { return contents_->batch.tensor(); }
std::span<const named_tensor> device_batch::tensors() const noexcept {
  return contents_->batch.tensors();
}
const tensor* device_batch::find(std::string_view name) const noexcept {
  return contents_->batch.find(name);
}
const tensor& device_batch::operator[](std::string_view name) const {
  return contents_->batch[name];
}
bool device_batch::has_labels() const noexcept { return contents_->labels.has_value(); }

const tensor& device_batch::labels() const {
  if (contents_->labels) return *contents_->labels;
  throw error(errc::invalid_argument, "get the labels of a batch", "its samples have none");
}

const std::vector<sample>& device_batch::samples() const noexcept {
  return contents_->batch.samples();
}
device device_batch::on() const noexcept { return contents_->ready.on(); }
const event& device_batch::ready() const noexcept { return contents_->ready; }

void device_batch::wait_on(const stream& user) const {
  for (auto& each : contents_->blocks) each.use_on(user);
  user.wait(contents_->ready);
  contents_->place(user);
}

void device_batch::record_on(const stream& user) const {
  for (auto& each : contents_->blocks) each.record_on(user);
}

std::size_t device_batch::content_bytes() const { return contents_->batch.content_bytes(); }

}  // namespace lade::cuda
