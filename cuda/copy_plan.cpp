#include "copy_plan.hpp"
#include "label_copy.hpp"

#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <utility>

namespace lade::cuda {

static void require_readable(const named_tensor& each) {
  auto device = each.tensor().where();
  if (!device.is_host_accessible())
    throw error(errc::invalid_argument, "copy tensor " + each.name() + " to a GPU",
                "it is in " + to_string(device));
}

static bool needs_staging(const tensor& from) {
  return from.where().type == lade::device::kind::cpu || !from.contiguous();
}

copy_plan::copy_plan(const sample_batch& batch) {
  for (auto& each : batch.tensors()) {
    require_readable(each);
    auto& from = each.tensor();
    add({.name = each.name(), .from = from, .spec = from.spec(), .is_staged = needs_staging(from)});
  }
  if (!have_labels(batch.samples())) return;
  add({.name = std::string(labels),
       .from = {},
       .spec = {element_type::i64, {static_cast<std::int64_t>(batch.size())}},
       .is_labels = true,
       .is_staged = true});
}

void copy_plan::add(part added) {
  constexpr std::size_t alignment = 256;
  auto bytes = added.spec.bytes();
  auto step = (bytes + alignment - 1) / alignment * alignment;
  added.offset = bytes_;
  added.staged_offset = staging_bytes_;
  bytes_ += step;
  if (added.is_staged) staging_bytes_ += step;
  if (added.is_staged && !added.is_labels) staged_bytes_ += bytes;
  parts_.push_back(std::move(added));
}

void copy_plan::stage(const sample_batch& batch, std::byte* staging) const {
  for (auto& each : parts_) {
    if (each.is_labels)
      write_labels(batch.samples(), staging + each.staged_offset);
    else if (each.is_staged)
      copy_elements(each.from, staging + each.staged_offset);
  }
}

const std::byte* copy_plan::source(const part& item, const buffer& staging) const {
  return item.is_staged ? staging.data() + item.staged_offset : item.from.bytes();
}

std::vector<buffer> copy_plan::sources(const buffer& staging) const {
  std::vector<buffer> all;
  for (auto& each : parts_)
    if (!each.is_staged) all.push_back(each.from.memory());
  if (!staging.empty()) all.push_back(staging);
  return all;
}

}  // namespace lade::cuda
