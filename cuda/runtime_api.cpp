#include "runtime_api.hpp"

#include <atomic>

namespace lade::cuda {

static constexpr runtime_api real_api;
static constinit std::atomic<const runtime_api*> used_api = &real_api;

const runtime_api& api() noexcept { return *used_api.load(std::memory_order_relaxed); }

void replace_api(const runtime_api* by) noexcept { used_api = by ? by : &real_api; }

}  // namespace lade::cuda
