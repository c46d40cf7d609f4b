// How fast videos are decoded by NVDEC through lade, beside a bare loop over the same library. The
// two take turns; prints a line of JSON with the medians. Needs a GPU: without one it says so, and
// exits with 77.

#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/lade.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/video.hpp>

#include "bench.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ffnvcodec/dynlink_loader.h>

namespace lade::cuda {

// The libraries of the driver, as the bare loop calls them.
struct bare_driver {
  bare_driver() {
    if (cuda_load_functions(&cuda, nullptr) < 0 || cuvid_load_functions(&video, nullptr) < 0 ||
        cuda->cuInit(0) != CUDA_SUCCESS || cuda->cuDevicePrimaryCtxRetain(&context, 0) != 0)
      bench::fail("NVDEC cannot be loaded");
  }

  CudaFunctions* cuda = nullptr;
  CuvidFunctions* video = nullptr;
  CUcontext context = nullptr;
};

static void require_decoded(CUresult result) {
  if (result != CUDA_SUCCESS) bench::fail("NVDEC failed: " + std::to_string(result));
}

// One thread's decoder, which is kept while the format stays the same.
class bare_decoder {
 public:
  explicit bare_decoder(const bare_driver& driver) : driver_(driver) {
    require_decoded(driver.cuda->cuCtxPushCurrent(driver.context));
    require_decoded(driver.cuda->cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  bare_decoder(const bare_decoder&) = delete;
  ~bare_decoder() {
    if (decoder_) driver_.video->cuvidDestroyDecoder(decoder_);
  }

  std::uint64_t decode(const media::packets& packets) {
    shown_ = 0;
    CUVIDPARSERPARAMS how{};
    how.CodecType = packets.stream().codec() == "hevc" ? cudaVideoCodec_HEVC : cudaVideoCodec_H264;
    how.ulMaxNumDecodeSurfaces = 1;
    how.ulMaxDisplayDelay = 1;
    how.pUserData = this;
    how.pfnSequenceCallback = [](void* self, CUVIDEOFORMAT* format) {
      return static_cast<bare_decoder*>(self)->begin(*format);
    };
    how.pfnDecodePicture = [](void* self, CUVIDPICPARAMS* picture) {
      auto& it = *static_cast<bare_decoder*>(self);
      return it.driver_.video->cuvidDecodePicture(it.decoder_, picture) == CUDA_SUCCESS ? 1 : 0;
    };
    how.pfnDisplayPicture = [](void* self, CUVIDPARSERDISPINFO* picture) {
      return static_cast<bare_decoder*>(self)->show(*picture);
    };
    CUvideoparser parser = nullptr;
    require_decoded(driver_.video->cuvidCreateVideoParser(&parser, &how));
    for (const auto& each : packets) send(parser, each.data(), 0);
    send(parser, {}, CUVID_PKT_ENDOFSTREAM);
    driver_.video->cuvidDestroyVideoParser(parser);
    return shown_;
  }

 private:
  void send(CUvideoparser parser, std::span<const std::byte> bytes, unsigned long flags) {
    CUVIDSOURCEDATAPACKET data{};
    data.flags = flags;
    data.payload = reinterpret_cast<const unsigned char*>(bytes.data());
    data.payload_size = bytes.size();
    require_decoded(driver_.video->cuvidParseVideoData(parser, &data));
  }

  int begin(const CUVIDEOFORMAT& format) {
    const int surfaces = format.min_num_decode_surfaces + 2;
    const bool same = decoder_ && format.coded_width == width_ && format.coded_height == height_ &&
                      format.codec == codec_ && format.bit_depth_luma_minus8 == depth_;
    if (same) return surfaces;
    if (decoder_) driver_.video->cuvidDestroyDecoder(decoder_);
    CUVIDDECODECREATEINFO info{};
    info.ulWidth = info.ulTargetWidth = info.ulMaxWidth = width_ = format.coded_width;
    info.ulHeight = info.ulTargetHeight = info.ulMaxHeight = height_ = format.coded_height;
    info.CodecType = codec_ = format.codec;
    info.bitDepthMinus8 = depth_ = format.bit_depth_luma_minus8;
    info.ChromaFormat = format.chroma_format;
    info.OutputFormat = depth_ > 0 ? cudaVideoSurfaceFormat_P016 : cudaVideoSurfaceFormat_NV12;
    info.ulNumDecodeSurfaces = static_cast<unsigned long>(surfaces);
    info.ulNumOutputSurfaces = 4;
    info.ulCreationFlags = cudaVideoCreate_PreferCUVID;
    require_decoded(driver_.video->cuvidCreateDecoder(&decoder_, &info));
    return surfaces;
  }

  int show(const CUVIDPARSERDISPINFO& picture) {
    CUVIDPROCPARAMS how{};
    how.progressive_frame = picture.progressive_frame;
    how.second_field = picture.repeat_first_field + 1;
    how.output_stream = stream_;
    CUdeviceptr address = 0;
    unsigned pitch = 0;
    require_decoded(
        driver_.video->cuvidMapVideoFrame(decoder_, picture.picture_index, &address, &pitch, &how));
    require_decoded(driver_.video->cuvidUnmapVideoFrame(decoder_, address));
    ++shown_;
    return 1;
  }

  const bare_driver& driver_;
  CUstream stream_ = nullptr;
  CUvideodecoder decoder_ = nullptr;
  unsigned width_ = 0;
  unsigned height_ = 0;
  cudaVideoCodec codec_ = cudaVideoCodec_H264;
  unsigned depth_ = 0;
  std::uint64_t shown_ = 0;
};

// Threads that each take the next of the videos.
static void in_parallel(std::size_t threads, std::size_t items,
                        const std::function<void(std::atomic<std::size_t>& next)>& take) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < std::min(threads, items); ++i) all.emplace_back([&] { take(next); });
  for (auto& each : all) each.join();
}

static double decode_bare(const bare_driver& driver, const std::vector<media::packets>& videos,
                          std::size_t threads, std::atomic<std::uint64_t>& frames) {
  bench::stopwatch clock;
  in_parallel(threads, videos.size(), [&](std::atomic<std::size_t>& next) {
    bare_decoder decoder(driver);
    for (auto i = next++; i < videos.size(); i = next++) frames += decoder.decode(videos[i]);
  });
  return clock.wall_s();
}

static double decode_by_lade(runtime& in, const std::vector<media::video>& videos,
                             std::size_t threads, std::atomic<std::uint64_t>& frames) {
  bench::stopwatch clock;
  in_parallel(threads, videos.size(), [&](std::atomic<std::size_t>& next) {
    stream work(device(0));
    use_surface count = [&](std::int64_t, const surface&) { ++frames; };
    for (auto i = next++; i < videos.size(); i = next++) {
      std::vector<std::int64_t> numbers(static_cast<std::size_t>(videos[i].size()));
      std::iota(numbers.begin(), numbers.end(), 0);
      sync_wait(in, decode_surfaces(videos[i], std::move(numbers), work, count));
    }
  });
  return clock.wall_s();
}

static buffer bytes_of_file(const std::string& path) {
  buffer bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

static media::packets annex_b_of(const media::video& of) {
  std::vector<media::packet> all;
  for (std::size_t i = 0; i < of.index().packets().size(); ++i) all.push_back(of.packet_at(i));
  const media::packets packets(of.stream(), std::move(all));
  const bool hevc = of.stream().codec() == "hevc";
  return media::filter_packets(packets, hevc ? "hevc_mp4toannexb" : "h264_mp4toannexb");
}

static int compare_decoders(int argc, char** argv) {
  bench::options options(argc, argv, "NVDEC through lade, beside a bare loop.");
  auto directory = options.text("dir", "build/media/clips", "MP4 files of H.264 or HEVC");
  auto rounds = options.number("rounds", 5, "in which the two take turns");
  options.done();
  if (device::count() == 0) {
    std::fprintf(stderr, "%s\n", device::why_none().c_str());
    return 77;
  }
  std::vector<media::video> videos;
  std::vector<media::packets> packets;
  for (const auto& path : bench::list_files(directory)) {
    videos.emplace_back(bytes_of_file(path), path);
    packets.push_back(annex_b_of(videos.back()));
  }
  runtime runtime;
  const bare_driver driver;
  const auto sessions = static_cast<std::size_t>(decoders_of(runtime, device(0)).sessions);
  std::vector<double> bare_s, lade_s;
  std::atomic<std::uint64_t> bare_frames = 0, lade_frames = 0;
  for (std::size_t i = 0; i <= rounds; ++i) {  // the first makes the decoders
    bare_s.push_back(decode_bare(driver, packets, sessions, bare_frames));
    lade_s.push_back(decode_by_lade(runtime, videos, sessions, lade_frames));
  }
  if (bare_frames != lade_frames) bench::fail("the two have decoded different numbers of frames");
  const auto per_round = static_cast<double>(lade_frames) / static_cast<double>(rounds + 1);
  const auto rate = [&](std::vector<double>& seconds) {
    std::sort(seconds.begin() + 1, seconds.end());
    return per_round / seconds[1 + (seconds.size() - 1) / 2];
  };
  const double bare = rate(bare_s), lade = rate(lade_s);
  std::printf(
      "{\"bench\": \"nvdec_bench\", \"sessions\": %zu, \"bare_frames_s\": %.1f, "
      "\"lade_frames_s\": %.1f, \"ratio\": %.3f}\n",
      sessions, bare, lade, lade / bare);
  return 0;
}

}  // namespace lade::cuda

int main(int argc, char** argv) { return lade::cuda::compare_decoders(argc, argv); }
