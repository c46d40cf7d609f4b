#include "nvtx_api.hpp"

#include <lade/cuda/nvtx.hpp>
#include <lade/printable.hpp>

#include <string>

namespace lade::cuda {

static constexpr nvtx_api real_nvtx;

nvtx_hooks::nvtx_hooks() : nvtx_hooks(real_nvtx) {}

nvtx_hooks::nvtx_hooks(const nvtx_api& functions)
    : functions_(functions), domain_(functions.domain_create("lade")) {}

nvtx_hooks::~nvtx_hooks() {
  if (domain_) functions_.domain_destroy(domain_);
}

void nvtx_hooks::enter_stage(std::string_view stage) {
  if (domain_) begin(stage.data(), stage, {});
}

void nvtx_hooks::leave_stage(std::string_view stage, const std::exception_ptr&) {
  if (domain_) end(stage.data());
}

// Both hooks of a call get the same object of positions. The thread may be another one.
void nvtx_hooks::enter_item(const item_call& call) {
  if (domain_) begin(&call.positions, call.stage, call.item);
}

void nvtx_hooks::leave_item(const item_call& call, const std::exception_ptr&) {
  if (domain_) end(&call.positions);
}

void nvtx_hooks::begin(const void* key, std::string_view stage, std::string_view item) {
  std::string name(stage);
  if (!item.empty()) name.append(" ").append(printable(item));
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  auto range = functions_.range_start(domain_, &attributes);
  std::lock_guard lock(mutex_);
  open_.emplace(key, range);
}

void nvtx_hooks::end(const void* key) {
  nvtxRangeId_t range = 0;
  {
    std::lock_guard lock(mutex_);
    auto found = open_.find(key);
    if (found == open_.end()) return;
    range = found->second;
    open_.erase(found);
  }
  functions_.range_end(domain_, range);
}

}  // namespace lade::cuda
