#include "check.hpp"
#include "fixed_tensors.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/device_batch.hpp>
#include <lade/error.hpp>

#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::cuda {

// `placed`: an event after the copies to tensors of fixed addresses.
struct device_batch::contents {
  contents(sample_batch of_tensors, std::optional<lade::tensor> of_labels,
           std::vector<device_block> memory, event written, detail::placements to_fixed)
      : batch(std::move(of_tensors)),
        labels(std::move(of_labels)),
        blocks(std::move(memory)),
        ready(std::move(written)),
        placements(std::move(to_fixed)) {}
  contents(const contents&) = delete;
  ~contents() {
    if (!placements.in) return;
    std::lock_guard lock(placements.in->mutex);
    if (placements.in->placed != this) return;
    placements.in->users.record_all();
    placements.in->placed = nullptr;
  }

  void place(const stream& user) {
    if (!placements.in) return;
    auto& fixed = *placements.in;
    std::lock_guard lock(fixed.mutex);
    if (placed && fixed.placed != this)
      throw error(errc::invalid_argument, "wait for a batch at fixed addresses",
                  "a later one has been copied there");
    if (placed)
      user.wait(*placed);
    else
      placed = copy_to(fixed, user);
    fixed.users.use_on(user);
  }

  // Claims the tensors for this batch and stream first, so that a failed copy leaves them claimed.
  event copy_to(detail::fixed_tensors& fixed, const stream& user) const {
    fixed.users.let_wait(user);
    fixed.users.clear();
    fixed.placed = this;
    fixed.users.use_on(user);
    current_device current(user.on());
    for (auto& each : placements.copies)
      check(api().memcpy_async(each.to.bytes(), each.from.bytes(), each.from.spec().bytes(),
                               cudaMemcpyDeviceToDevice, user.handle()),
            "copy a batch to fixed addresses");
    return user.record();
  }

  void record_in_place(const stream& user) {
    if (!placements.in) return;
    std::lock_guard lock(placements.in->mutex);
    if (placements.in->placed == this) placements.in->users.set(user, user.record());
  }

  const sample_batch batch;
  const std::optional<lade::tensor> labels;
  const std::vector<device_block> blocks;
  const event ready;
  const detail::placements placements;
  std::optional<event> placed;  // guarded by the mutex of the fixed tensors
};

// Throws for a batch that a stage of the program makes.
[[noreturn]] static void refuse_device_batch(const std::string& reason) {
  throw error(errc::invalid_argument, "make a batch of a GPU", reason);
}

static void require_on(device on, const std::string& name, lade::device found) {
  using kind = lade::device::kind;
  if (found.type == kind::cuda_managed) return;
  if (found.type == kind::cuda && found.index == on.index()) return;
  refuse_device_batch(
      fmt::format("{} is in {}, and the event is of cuda:{}", name, to_string(found), on.index()));
}

static void require_part_for_each(const named_tensor& tensor, std::size_t samples) {
  auto& shape = tensor.tensor().shape();
  if (shape.size() > 0 && std::cmp_equal(shape[0], samples)) return;
  refuse_device_batch(fmt::format("tensor {} is {}, and there are {} samples", tensor.name(),
                                  to_string(shape), samples));
}

static void require_labels(const tensor& labels, std::size_t samples) {
  bool fits = labels.type() == element_type::i64 && labels.rank() == 1 &&
              std::cmp_equal(labels.shape()[0], samples) && labels.contiguous();
  if (fits) return;
  refuse_device_batch(fmt::format("the labels are {}{}, not i64[{}] in one piece",
                                  name(labels.type()), to_string(labels.shape()), samples));
}

static sample_batch checked_batch(std::vector<named_tensor> tensors, std::vector<sample> samples,
                                  const std::optional<tensor>& labels,
                                  const std::vector<device_block>& blocks, device on) {
  for (auto& each : tensors) {
    require_on(on, "tensor " + each.name(), each.tensor().where());
    require_part_for_each(each, samples.size());
  }
  if (labels) {
    require_on(on, "the tensor of the labels", labels->where());
    require_labels(*labels, samples.size());
  }
  for (auto& each : blocks) require_on(on, "a block", each.slice(0, 0).where());
  return {std::move(tensors), std::move(samples)};
}

device_batch::device_batch(std::vector<named_tensor> tensors, std::vector<sample> samples,
                           std::optional<lade::tensor> labels, std::vector<device_block> blocks,
                           event ready) {
  auto batch = checked_batch(std::move(tensors), std::move(samples), labels, blocks, ready.on());
  contents_ = std::make_shared<contents>(std::move(batch), std::move(labels), std::move(blocks),
                                         std::move(ready), detail::placements());
}

device_batch::device_batch(std::vector<named_tensor> tensors, std::vector<sample> samples,
                           std::optional<lade::tensor> labels, std::vector<device_block> blocks,
                           event ready, detail::placements placements)
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

bool device_batch::is_at_fixed_addresses() const noexcept {
  return contents_->placements.in != nullptr;
}

void device_batch::wait_on(const stream& user) const {
  for (auto& each : contents_->blocks) each.use_on(user);
  user.wait(contents_->ready);
  contents_->place(user);
}

void device_batch::record_on(const stream& user) const {
  for (auto& each : contents_->blocks) each.record_on(user);
  contents_->record_in_place(user);
}

std::size_t device_batch::content_bytes() const { return contents_->batch.content_bytes(); }

}  // namespace lade::cuda
