// A cache of the idle decoders of a GPU.

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

// The configuration of a decoder. Every parameter that affects its output must be a member.
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
  rectangle display;          // the part of the picture that is mapped
  unsigned target_width = 0;  // size of the mapped picture
  unsigned target_height = 0;
  unsigned decode_surfaces = 0;
  unsigned output_surfaces = 0;

  auto operator<=>(const decoder_format&) const = default;
};

// Counters of the decoders of a GPU in one runtime.
struct decoder_counters {
  std::atomic<std::uint64_t> created = 0;
  std::atomic<std::uint64_t> reconfigured = 0;
  std::atomic<std::uint64_t> reused = 0;
  std::atomic<std::uint64_t> destroyed = 0;
  std::atomic<std::uint64_t> abandoned = 0;
};

// Owns a decoder of NVDEC. If its context cannot be made current any more, the destructor abandons
// the decoder: the driver would destroy it in another context.
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

  // NVDEC permits this only in the callback of a sequence. After an exception, the decoder must not
  // be used.
  void reconfigure(const decoder_format& other);

  // Makes the destructor leak the decoder: an object that refers to it cannot be freed.
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

// An LRU cache of idle decoders. Creating a decoder takes 300 ms, reconfiguring one a few ms. Any
// thread.
class decoder_cache {
 public:
  decoder_cache(std::shared_ptr<const primary_context> in,
                std::shared_ptr<decoder_counters> counted, std::size_t most_idle)
      : context_(std::move(in)), counted_(std::move(counted)), most_idle_(most_idle) {}

  // Returns an idle decoder of the format. Otherwise creates one, or, if the cache is full,
  // reconfigures one. Call in the callback of a sequence, with the context current. Throws error.
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
  std::list<std::unique_ptr<open_decoder>> idle_;  // guarded by mutex_; most recently used first
};

}  // namespace lade::cuda
