#include "sessions.hpp"

#include <lade/cuda/nvdec/capabilities.hpp>

#include <algorithm>

namespace lade::cuda {

// All NVDEC engines decode H.264.
static int count_engines(device on) {
  return std::max(1, limits_of(on, {.codec = "h264"}).engines);
}

// The cache holds as many idle decoders as there are engines, but at least four, for videos of
// several formats on one engine.
decoder_sessions::decoder_sessions(device gpu)
    : on(gpu),
      context(std::make_shared<const primary_context>(gpu)),
      counters(std::make_shared<decoder_counters>()),
      engines(count_engines(gpu)),
      idle(context, counters, static_cast<std::size_t>(std::max(4, engines))),
      free(static_cast<std::size_t>(engines)) {}

std::shared_ptr<decoder_sessions> decoder_service::of(device on) {
  std::lock_guard lock(mutex_);
  auto& found = devices_[on.index()];
  if (!found) found = std::make_shared<decoder_sessions>(on);
  return found;
}

}  // namespace lade::cuda
