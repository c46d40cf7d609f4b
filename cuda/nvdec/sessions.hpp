// The decoders of the GPUs of a runtime.

#pragma once

#include "context.hpp"
#include "decoder_cache.hpp"

#include <lade/runtime.hpp>
#include <lade/semaphore.hpp>

#include <map>
#include <memory>
#include <mutex>

namespace lade::cuda {

// The sessions and idle decoders of one GPU. A session is the right to use a decoder. There are as
// many as the GPU has NVDEC engines: more would take memory without decoding faster.
struct decoder_sessions {
  explicit decoder_sessions(device gpu);

  device on;
  std::shared_ptr<const primary_context> context;
  std::shared_ptr<decoder_counters> counters;
  int engines;
  decoder_cache idle;
  semaphore free;
};

// A service of the runtime: decoders are destroyed before the runtime ends.
class decoder_service {
 public:
  explicit decoder_service(runtime&) {}

  // Throws error if the GPU has no NVDEC.
  std::shared_ptr<decoder_sessions> of(device on);

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<decoder_sessions>> devices_;  // guarded
};

// Releases an acquired session when destroyed.
class session_permit {
 public:
  explicit session_permit(decoder_sessions& sessions) noexcept : sessions_(sessions) {}
  session_permit(const session_permit&) = delete;
  ~session_permit() { sessions_.free.release(); }

 private:
  decoder_sessions& sessions_;
};

}  // namespace lade::cuda
