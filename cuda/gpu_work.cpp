#include "gpu_work.hpp"

#include <lade/trace.hpp>

namespace lade::cuda {

void gpu_levels::change(trace& in, const std::string& stage, int by) noexcept try {
  std::lock_guard lock(mutex_);
  const auto at = counts_.try_emplace({&in, stage}).first;
  const auto now = at->second += static_cast<std::uint64_t>(by);
  if (now == 0) counts_.erase(at);
  in.add_levels(stage + " on the GPU", {{"queued", now}});
} catch (...) {}

gpu_work::gpu_work(const context& current) {
  if (!current.trace || !current.runtime) return;
  levels_ = &current.runtime->service<gpu_levels>();
  stage_ = current.stage_name();
  if (stage_.empty()) return;
  in_ = current.trace;
  levels_->change(*in_, stage_, 1);
}

gpu_work::~gpu_work() {
  if (in_) levels_->change(*in_, stage_, -1);
}

}  // namespace lade::cuda
