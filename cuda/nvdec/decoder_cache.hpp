// Open decoders of a GPU, which are used by one stream after another.

#pragma once

#include "context.hpp"

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

namespace lade::cuda {

// All that a decoder is made for. Everything that changes what it decodes, or how much of it, must
// be a member.
struct decoder_format {
  cudaVideoCodec codec = cudaVideoCodec_H264;
  cudaVideoChromaFormat chroma = cudaVideoChromaFormat_420;
  cudaVideoSurfaceFormat output = cudaVideoSurfaceFormat_NV12;
  unsigned bits = 8;
  unsigned coded_width = 0;
  unsigned coded_height = 0;
  struct rectangle {
    int left = 0;
    int top = 0;
    int right = 0;
    int bottom = 0;
    auto operator<=>(const rectangle&) const = default;
  };
  rectangle display;          // the part that is mapped
  unsigned target_width = 0;  // to which that part is resized
  unsigned target_height = 0;
  unsigned decode_surfaces = 0;
  unsigned output_surfaces = 0;

  auto operator<=>(const decoder_format&) const = default;
};

// How often what has happened; of a GPU, in one runtime.
struct decoder_counters {
  std::atomic<std::uint64_t> created = 0;
  std::atomic<std::uint64_t> reconfigured = 0;
  std::atomic<std::uint64_t> reused = 0;
  std::atomic<std::uint64_t> destroyed = 0;
  std::atomic<std::uint64_t> abandoned = 0;
};

// A decoder of NVDEC. Where its context cannot be made current any more, it is abandoned: the
// driver would free it in another context.
class open_decoder {
 public:
  open_decoder(std::shared_ptr<const primary_context> in, std::shared_ptr<decoder_counters> counted,
               const decoder_format& format);
  open_decoder(const open_decoder&) = delete;
  ~open_decoder();

  CUvideodecoder handle() const noexcept { return handle_; }
  const decoder_format& format() const noexcept { return format_; }

  // Whether reconfigure() to the format is allowed.
  bool can_become(const decoder_format& other) const noexcept;

  // Only in the callback of a sequence, as NVDEC demands. Throws error; the decoder must not be
  // used then.
  void reconfigure(const decoder_format& other);

  // Something that refers to the decoder cannot be freed: the destructor leaves it alone.
  void abandon() noexcept { is_abandoned_ = true; }

 private:
  std::shared_ptr<const primary_context> context_;
  std::shared_ptr<decoder_counters> counted_;
  decoder_format format_;
  unsigned max_width_;
  unsigned max_height_;
  CUvideodecoder handle_ = nullptr;
  bool is_abandoned_ = false;
};

// The idle decoders: the least recently used one goes where there are too many. Creating one takes
// 300 ms, reconfiguring a few. Any thread.
class decoder_cache {
 public:
  decoder_cache(std::shared_ptr<const primary_context> in,
                std::shared_ptr<decoder_counters> counted, std::size_t most_idle)
      : context_(std::move(in)), counted_(std::move(counted)), most_idle_(most_idle) {}

  // An idle decoder of the format; or else a new one, or, if the cache is full, one that is
  // reconfigured. In the callback of a sequence, with the context current. Throws error.
  std::unique_ptr<open_decoder> take(const decoder_format& format);

  void give_back(std::unique_ptr<open_decoder> used);

 private:
  std::unique_ptr<open_decoder> find(const decoder_format& format);
  std::unique_ptr<open_decoder> find_similar(const decoder_format& format);
  std::unique_ptr<open_decoder> evict();

  std::shared_ptr<const primary_context> context_;
  std::shared_ptr<decoder_counters> counted_;
  std::size_t most_idle_;
  std::mutex mutex_;
  std::list<std::unique_ptr<open_decoder>> idle_;  // guarded; the most recently used first
};

}  // namespace lade::cuda
