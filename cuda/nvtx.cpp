#include "nvtx_api.hpp"

#include <lade/cuda/nvtx.hpp>
#include <lade/printable.hpp>

#include <any>
#include <cstdint>
#include <mutex>
#include <string>

namespace lade::cuda {

static constexpr nvtx_api real_nvtx;

nvtx_hooks::nvtx_hooks() : nvtx_hooks(real_nvtx) {}

nvtx_hooks::nvtx_hooks(const nvtx_api& functions)
    : functions_(functions), domain_(functions.domain_create("lade")) {}

nvtx_hooks::~nvtx_hooks() {
  if (domain_) functions_.domain_destroy(domain_);
}

// Both hooks of a stage receive the same characters, so their address identifies the range.
void nvtx_hooks::enter_stage(std::string_view stage) {
  if (!domain_) return;
  auto range = begin(stage, {});
  std::lock_guard lock(mutex_);
  stages_.emplace(stage.data(), range);
}

void nvtx_hooks::leave_stage(std::string_view stage, const std::exception_ptr&) {
  if (!domain_) return;
  std::unique_lock lock(mutex_);
  auto ended = stages_.extract(stage.data());
  lock.unlock();
  if (ended) functions_.range_end(domain_, ended.mapped());
}

void nvtx_hooks::enter_item(const item_call& call) {
  if (domain_) call.local = begin(call.stage, call.item);
}

void nvtx_hooks::leave_item(const item_call& call, const std::exception_ptr&) {
  if (auto* range = std::any_cast<std::uint64_t>(&call.local))
    functions_.range_end(domain_, *range);
}

std::uint64_t nvtx_hooks::begin(std::string_view stage, std::string_view item) const {
  std::string name(stage);
  if (!item.empty()) name.append(" ").append(printable(item));
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  return functions_.range_start(domain_, &attributes);
}

}  // namespace lade::cuda
