#include "sessions.hpp"

#include <lade/cuda/nvdec/capabilities.hpp>

#include <algorithm>

namespace lade::cuda {

// H.264 is what all engines of all GPUs decode.
static int count_engines(device on) {
  return std::max(1, limits_of(on, {.codec = "h264"}).engines);
}

// There are as many idle decoders as engines, but four for videos of a few kinds on one engine.
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
