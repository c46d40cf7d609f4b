#include "decoder_cache.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace lade::cuda {

// NVDEC stores edges of rectangles as 16-bit numbers.
static short nvdec_edge(int edge) {
  if (edge < 0 || edge > std::numeric_limits<short>::max())
    throw error(errc::unsupported, "make a decoder of NVDEC", "the picture is too large");
  return static_cast<short>(edge);
}

template <class To>
static void set_rectangle(To& to, const decoder_format::rectangle& from) {
  to.left = nvdec_edge(from.left);
  to.top = nvdec_edge(from.top);
  to.right = nvdec_edge(from.right);
  to.bottom = nvdec_edge(from.bottom);
}

static CUVIDDECODECREATEINFO creation_of(const decoder_format& format) {
  CUVIDDECODECREATEINFO info{};
  info.ulWidth = format.coded_width;
  info.ulHeight = format.coded_height;
  info.ulMaxWidth = format.coded_width;
  info.ulMaxHeight = format.coded_height;
  info.ulNumDecodeSurfaces = format.decode_surfaces;
  info.ulNumOutputSurfaces = format.output_surfaces;
  info.CodecType = format.codec;
  info.ChromaFormat = format.chroma;
  info.OutputFormat = format.output;
  info.bitDepthMinus8 = format.bits - 8;
  info.ulCreationFlags = cudaVideoCreate_PreferCUVID;
  info.DeinterlaceMode = cudaVideoDeinterlaceMode_Weave;  // interlaced frames as the CPU decodes
                                                          // them
  info.ulTargetWidth = format.target_width;
  info.ulTargetHeight = format.target_height;
  set_rectangle(info.display_area, format.display);
  return info;
}

open_decoder::open_decoder(std::shared_ptr<const primary_context> in,
                           std::shared_ptr<decoder_counters> counted, const decoder_format& format)
    : context_(std::move(in)),
      counted_(std::move(counted)),
      format_(format),
      max_width_(format.coded_width),
      max_height_(format.coded_height) {
  auto info = creation_of(format);
  const context_scope scope(*context_, "make a decoder of NVDEC");
  check_nvdec(nvcuvid().create_decoder(&handle_, &info), "make a decoder of NVDEC");
  ++counted_->created;
}

open_decoder::~open_decoder() {
  const context_scope scope(*context_);
  if (!is_abandoned_ && scope.is_current() && nvcuvid().destroy_decoder(handle_) == CUDA_SUCCESS)
    ++counted_->destroyed;
  else
    ++counted_->abandoned;
}

bool open_decoder::can_become(const decoder_format& other) const noexcept {
  return format_.codec == other.codec && format_.chroma == other.chroma &&
         format_.output == other.output && format_.bits == other.bits &&
         format_.output_surfaces == other.output_surfaces && other.coded_width <= max_width_ &&
         other.coded_height <= max_height_;
}

void open_decoder::reconfigure(const decoder_format& other) {
  CUVIDRECONFIGUREDECODERINFO info{};
  info.ulWidth = other.coded_width;
  info.ulHeight = other.coded_height;
  info.ulTargetWidth = other.target_width;
  info.ulTargetHeight = other.target_height;
  info.ulNumDecodeSurfaces = other.decode_surfaces;
  set_rectangle(info.display_area, other.display);
  const context_scope scope(*context_, "reconfigure a decoder of NVDEC");
  check_nvdec(nvcuvid().reconfigure_decoder(handle_, &info), "reconfigure a decoder of NVDEC");
  format_ = other;
  ++counted_->reconfigured;
}

std::unique_ptr<open_decoder> decoder_cache::find(const decoder_format& format) {
  std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(idle_, [&](const auto& each) { return each->format() == format; });
  if (found == idle_.end()) return nullptr;
  auto taken = std::move(*found);
  idle_.erase(found);
  return taken;
}

// If the cache is full, returns a decoder that can be reconfigured; else nothing.
std::unique_ptr<open_decoder> decoder_cache::find_similar(const decoder_format& format) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < most_idle_) return nullptr;
  const auto last = std::find_if(idle_.rbegin(), idle_.rend(),
                                 [&](const auto& each) { return each->can_become(format); });
  if (last == idle_.rend()) return nullptr;
  auto taken = std::move(*last);
  idle_.erase(std::next(last).base());
  return taken;
}

std::unique_ptr<open_decoder> decoder_cache::evict() {
  std::lock_guard lock(mutex_);
  if (idle_.empty() || idle_.size() < most_idle_) return nullptr;
  auto evicted = std::move(idle_.back());
  idle_.pop_back();
  return evicted;
}

std::unique_ptr<open_decoder> decoder_cache::take(const decoder_format& format) {
  if (auto equal = find(format)) {
    ++counted_->reused;
    return equal;
  }
  if (auto similar = find_similar(format)) {
    try {
      similar->reconfigure(format);
      return similar;
    } catch (const error&) {
      // Only the driver knows which formats cannot be reconfigured.
    }
  }
  evict();  // frees GPU memory, too
  return std::make_unique<open_decoder>(context_, counted_, format);
}

// Evicted decoders are destroyed without the lock, since that takes long.
void decoder_cache::give_back(std::unique_ptr<open_decoder> used) {
  std::list<std::unique_ptr<open_decoder>> one;
  one.push_front(std::move(used));
  std::unique_ptr<open_decoder> evicted;
  std::lock_guard lock(mutex_);
  idle_.splice(idle_.begin(), one);
  if (idle_.size() <= most_idle_) return;
  evicted = std::move(idle_.back());
  idle_.pop_back();
}

}  // namespace lade::cuda
