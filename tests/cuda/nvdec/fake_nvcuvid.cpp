#include "fake_nvcuvid.hpp"

#include "../../../cuda/nvdec/codings.hpp"
#include "../../../cuda/runtime_api.hpp"

#include <lade/media/av.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "../fake_driver.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>
}

namespace lade::cuda {

static fake_nvcuvid* current_nvcuvid = nullptr;
static thread_local std::vector<CUcontext> pushed_contexts;
static thread_local int sequence_callbacks = 0;

using shared_frame = std::shared_ptr<const AVFrame>;

static int divided_up(int count, int shift) { return -(-count >> shift); }

// Writes the planes of a coded picture as they lie in a surface: samples of more than 8 bits are
// the upper bits of 16. What lies outside of the picture stays as it is.
class surface_writer {
 public:
  surface_writer(const AVFrame& from, const CUVIDDECODECREATEINFO& how, unsigned pitch)
      : from_(from),
        format_(*av_pix_fmt_desc_get(static_cast<AVPixelFormat>(from.format))),
        how_(how),
        pitch_(pitch) {}

  void write(std::vector<std::byte>& to) const {
    for (int c = 0; c < 3; ++c) {
      const int width = divided_up(static_cast<int>(how_.ulTargetWidth), shift_x(c));
      const int height = divided_up(static_cast<int>(how_.ulTargetHeight), shift_y(c));
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          write_sample(
              c, x, y,
              source(x, how_.display_area.left, how_.display_area.right, width, shift_x(c)),
              source(y, how_.display_area.top, how_.display_area.bottom, height, shift_y(c)), to);
    }
  }

 private:
  int shift_x(int c) const { return c > 0 ? format_.log2_chroma_w : 0; }
  int shift_y(int c) const { return c > 0 ? format_.log2_chroma_h : 0; }

  static int source(int i, int begin, int end, int count, int shift) {
    return (begin >> shift) + fake_nvcuvid::nearest(i, divided_up(end - begin, shift), count);
  }

  void write_sample(int c, int x, int y, int from_x, int from_y, std::vector<std::byte>& to) const {
    if (from_x >= divided_up(from_.width, shift_x(c)) ||
        from_y >= divided_up(from_.height, shift_y(c)))
      return;
    const int depth = format_.comp[0].depth;
    const int bytes = depth > 8 ? 2 : 1;
    const auto* sample =
        from_.data[c] + std::ptrdiff_t{from_y} * from_.linesize[c] + from_x * bytes;
    unsigned value = *sample;
    if (bytes == 2) value = (sample[0] | unsigned{sample[1]} << 8) << (16 - depth);
    const bool planar = format_.log2_chroma_w == 0;
    const int plane = planar ? c : std::min(c, 1);
    const int column = c > 0 && !planar ? 2 * x + c - 1 : x;
    const auto rows = (how_.ulTargetHeight + 1) / 2 * 2;
    const auto row = static_cast<std::size_t>(plane) * rows + static_cast<std::size_t>(y);
    std::memcpy(to.data() + row * pitch_ + static_cast<std::size_t>(column * bytes), &value,
                static_cast<std::size_t>(bytes));
  }

  const AVFrame& from_;
  const AVPixFmtDescriptor& format_;
  const CUVIDDECODECREATEINFO& how_;
  unsigned pitch_;
};

struct fake_nvcuvid::fake_decoder {
  struct output {
    void* memory = nullptr;
    bool mapped = false;
  };

  CUVIDDECODECREATEINFO info{};
  std::map<int, shared_frame> pictures;  // by index
  std::set<int> decoded;
  std::deque<output> outputs;
  unsigned pitch = 0;
  std::size_t surface_bytes = 0;

  void size() {
    const unsigned bytes = info.bitDepthMinus8 > 0 ? 2 : 1;
    pitch = (static_cast<unsigned>(info.ulTargetWidth) * bytes + 255) / 256 * 256;
    const bool planar = info.ChromaFormat == cudaVideoChromaFormat_444;
    surface_bytes = (info.ulTargetHeight + 1) / 2 * 2 * pitch * (planar ? 3 : 2);
  }
  // Returns false if the GPU has no memory for the surfaces.
  bool allocate() {
    size();
    outputs.resize(info.ulNumOutputSurfaces);
    bool allocated = true;
    for (auto& each : outputs)
      allocated &= api().malloc_async(&each.memory, surface_bytes, nullptr) == cudaSuccess;
    (void)api().stream_synchronize(nullptr);  // then any stream may use it
    if (!allocated) release();
    return allocated;
  }
  void release() {
    for (auto& each : outputs)
      if (each.memory) (void)api().free_async(each.memory, nullptr);
    outputs.clear();
  }
};

// Decodes with FFmpeg. What comes out of it is shown; what goes in is decoded.
struct fake_nvcuvid::fake_parser {
  struct sent_packet {
    std::vector<std::uint8_t> bytes;
    CUvideotimestamp time;
  };
  struct coded_picture {
    CUvideotimestamp time;
    int index;
  };

  CUVIDPARSERPARAMS how{};
  media::av_codec_context codec;
  AVCodecParserContext* scan = nullptr;
  std::optional<sent_packet> late;
  std::map<std::int64_t, coded_picture> coded;  // by serial number, until it is shown
  std::int64_t serial = 0;
  std::optional<CUVIDEOFORMAT> sequence;
  int surfaces = 0;
  fake_decoder* decoder = nullptr;  // that took the last picture

  explicit fake_parser(const CUVIDPARSERPARAMS& parameters) : how(parameters) {
    const std::map<cudaVideoCodec, AVCodecID> codecs{
        {cudaVideoCodec_H264, AV_CODEC_ID_H264}, {cudaVideoCodec_HEVC, AV_CODEC_ID_HEVC},
        {cudaVideoCodec_VP8, AV_CODEC_ID_VP8},   {cudaVideoCodec_VP9, AV_CODEC_ID_VP9},
        {cudaVideoCodec_AV1, AV_CODEC_ID_AV1},   {cudaVideoCodec_MPEG2, AV_CODEC_ID_MPEG2VIDEO}};
    const auto* found = avcodec_find_decoder(codecs.at(parameters.CodecType));
    codec.reset(avcodec_alloc_context3(found));
    codec->thread_count = 1;
    codec->err_recognition = 0;
    codec->apply_cropping = 0;  // pictures are as they are coded, where the codec has such a part
    avcodec_open2(codec.get(), found, nullptr);
  }
  ~fake_parser() {
    if (scan) av_parser_close(scan);
  }

  bool take_late() {
    if (!late) return true;
    const auto packet = std::exchange(late, std::nullopt);
    media::av_packet made(av_packet_alloc());
    av_new_packet(made.get(), static_cast<int>(packet->bytes.size()));
    std::memcpy(made->data, packet->bytes.data(), packet->bytes.size());
    made->pts = ++serial;
    coded[serial] = {packet->time, -1};
    return send(made.get());
  }

  bool send(const AVPacket* packet) {
    if (avcodec_send_packet(codec.get(), packet) < 0 && packet) return true;  // damage: no picture
    media::av_frame frame(av_frame_alloc());
    while (avcodec_receive_frame(codec.get(), frame.get()) >= 0) {
      if (!show(shared_frame(av_frame_clone(frame.get()), media::av_deleter()))) return false;
      av_frame_unref(frame.get());
    }
    return true;
  }

  CUVIDEOFORMAT format_of(const AVFrame& frame) const {
    const auto* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
    CUVIDEOFORMAT result{};
    result.codec = how.CodecType;
    result.coded_width = static_cast<unsigned>(std::max(codec->coded_width, frame.width));
    result.coded_height = static_cast<unsigned>(std::max(codec->coded_height, frame.height));
    result.display_area.left = static_cast<int>(frame.crop_left);
    result.display_area.top = static_cast<int>(frame.crop_top);
    result.display_area.right = frame.width - static_cast<int>(frame.crop_right);
    result.display_area.bottom = frame.height - static_cast<int>(frame.crop_bottom);
    result.bit_depth_luma_minus8 = static_cast<unsigned char>(format->comp[0].depth - 8);
    result.bit_depth_chroma_minus8 = result.bit_depth_luma_minus8;
    result.chroma_format = format->nb_components < 3    ? cudaVideoChromaFormat_Monochrome
                           : format->log2_chroma_h == 1 ? cudaVideoChromaFormat_420
                           : format->log2_chroma_w == 1 ? cudaVideoChromaFormat_422
                                                        : cudaVideoChromaFormat_444;
    result.min_num_decode_surfaces = 5;
    result.video_signal_description.video_full_range_flag =
        frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
    result.video_signal_description.matrix_coefficients =
        static_cast<unsigned char>(frame.colorspace);
    return result;
  }

  static bool is_same(const CUVIDEOFORMAT& a, const CUVIDEOFORMAT& b) {
    return a.coded_width == b.coded_width && a.coded_height == b.coded_height &&
           a.bit_depth_luma_minus8 == b.bit_depth_luma_minus8 && a.chroma_format == b.chroma_format;
  }

  // FFmpeg decodes a picture before it shows it, so this parser reports both at once.
  bool show(const shared_frame& frame) {
    auto format = format_of(*frame);
    if (!sequence || !is_same(*sequence, format)) {
      sequence = format;
      if (current_nvcuvid->options_.change) current_nvcuvid->options_.change(format);
      ++sequence_callbacks;
      surfaces = how.pfnSequenceCallback(how.pUserData, &format);
      --sequence_callbacks;
      if (surfaces <= 0) return false;
    }
    const auto found = coded.find(frame->pts);
    if (found == coded.end()) return true;
    const auto picture = found->second;
    coded.erase(found);
    CUVIDPICPARAMS decoded{};
    decoded.CurrPicIdx = static_cast<int>(frame->pts % surfaces);
    pending = frame;
    if (how.pfnDecodePicture(how.pUserData, &decoded) <= 0) return false;
    CUVIDPARSERDISPINFO shown{};
    shown.picture_index = decoded.CurrPicIdx;
    shown.progressive_frame = 1;
    shown.timestamp = picture.time;
    return how.pfnDisplayPicture(how.pUserData, &shown) > 0;
  }

  shared_frame pending;  // the picture to be decoded next
};

// The parser whose callback is running on this thread.
static thread_local shared_frame* frame_of_callback = nullptr;

template <class Rectangle>
static bool is_inside(const Rectangle& area, unsigned long width, unsigned long height) {
  return area.left >= 0 && area.top >= 0 && area.left < area.right && area.top < area.bottom &&
         static_cast<unsigned long>(area.right) <= width &&
         static_cast<unsigned long>(area.bottom) <= height;
}

// The functions of the table.
struct fake_nvcuvid::table : nvcuvid_api {
  static fake_nvcuvid& self() { return *current_nvcuvid; }

  template <class F>
  static CUresult locked(const char* function, bool needs_context, F body) {
    std::lock_guard lock(self().mutex_);
    if (auto failed = self().enter(function, needs_context); failed != CUDA_SUCCESS) return failed;
    return body(self());
  }

  table() {
    init = [](unsigned) { return locked("init", false, [](auto&) { return CUDA_SUCCESS; }); };
    device_get = [](CUdevice* found, int index) {
      return locked("device_get", false, [&](auto&) { return *found = index, CUDA_SUCCESS; });
    };
    retain_context = [](CUcontext* context, CUdevice of) {
      return locked("retain_context", false, [&](auto& it) {
        ++it.contexts_;
        *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(of + 1));
        return CUDA_SUCCESS;
      });
    };
    release_context = [](CUdevice) {
      return locked("release_context", false, [](auto& it) {
        if (--it.contexts_ < 0) it.fault("a context was released too often");
        return CUDA_SUCCESS;
      });
    };
    push_context = [](CUcontext context) {
      return locked("push_context", false, [&](auto& it) {
        if (it.lost_) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        pushed_contexts.push_back(context);
        return CUDA_SUCCESS;
      });
    };
    pop_context = [](CUcontext* context) {
      return locked("pop_context", false, [&](auto& it) {
        if (pushed_contexts.empty()) {
          it.fault("a context was popped that was not pushed");
          return CUDA_ERROR_INVALID_CONTEXT;
        }
        *context = pushed_contexts.back();
        pushed_contexts.pop_back();
        if (pushed_contexts.empty()) pushed_contexts.shrink_to_fit();
        return CUDA_SUCCESS;
      });
    };

    get_decoder_caps = [](CUVIDDECODECAPS* caps) {
      return locked("get_decoder_caps", true, [&](auto& it) {
        const bool supported = !it.options_.refused.contains(caps->eCodecType) &&
                               caps->eChromaFormat != cudaVideoChromaFormat_422;
        if (!supported) return CUDA_SUCCESS;
        caps->bIsSupported = 1;
        caps->nNumNVDECs = static_cast<unsigned char>(it.options_.engines);
        caps->nOutputFormatMask = static_cast<unsigned short>(it.options_.output_formats);
        caps->nMaxWidth = it.options_.max_width;
        caps->nMaxHeight = it.options_.max_height;
        caps->nMaxMBCount = it.options_.max_macroblocks;
        caps->nMinWidth = static_cast<unsigned short>(it.options_.min_width);
        caps->nMinHeight = static_cast<unsigned short>(it.options_.min_height);
        return CUDA_SUCCESS;
      });
    };
    create_decoder = [](CUvideodecoder* made, CUVIDDECODECREATEINFO* info) {
      return locked("create_decoder", true, [&](auto& it) {
        if (info->ulNumDecodeSurfaces < 1 || info->ulNumOutputSurfaces < 1 ||
            !is_inside(info->display_area, info->ulWidth, info->ulHeight))
          return CUDA_ERROR_INVALID_VALUE;
        auto decoder = std::make_unique<fake_decoder>();
        decoder->info = *info;
        if (!decoder->allocate()) return CUDA_ERROR_OUT_OF_MEMORY;
        *made = decoder.get();
        it.decoders_.emplace(*made, std::move(decoder));
        it.most_decoders_ = std::max(it.most_decoders_, it.decoders_.size());
        return CUDA_SUCCESS;
      });
    };
    destroy_decoder = [](CUvideodecoder handle) {
      return locked("destroy_decoder", true, [&](auto& it) {
        auto* decoder = it.decoder_of(handle);
        if (!decoder) return CUDA_ERROR_INVALID_HANDLE;
        for (const auto& each : decoder->outputs)
          if (each.mapped) it.fault("a decoder was destroyed with a mapped surface");
        decoder->release();
        it.decoders_.erase(handle);
        return CUDA_SUCCESS;
      });
    };
    decode_picture = [](CUvideodecoder handle, CUVIDPICPARAMS* picture) {
      return locked("decode_picture", true, [&](auto& it) {
        auto* decoder = it.decoder_of(handle);
        if (!decoder || !frame_of_callback) return CUDA_ERROR_INVALID_HANDLE;
        if (picture->CurrPicIdx >= static_cast<int>(decoder->info.ulNumDecodeSurfaces))
          it.fault("a picture was decoded beyond the decode surfaces");
        decoder->pictures[picture->CurrPicIdx] = *frame_of_callback;
        return CUDA_SUCCESS;
      });
    };
    get_decode_status = [](CUvideodecoder handle, int index, CUVIDGETDECODESTATUS* status) {
      return locked("get_decode_status", true, [&](auto& it) {
        auto* decoder = it.decoder_of(handle);
        if (!decoder) return CUDA_ERROR_INVALID_HANDLE;
        if (it.options_.status) return status->decodeStatus = *it.options_.status, CUDA_SUCCESS;
        const auto& picture = decoder->pictures.at(index);
        const bool damaged =
            (picture->flags & AV_FRAME_FLAG_CORRUPT) != 0 || picture->decode_error_flags != 0;
        status->decodeStatus =
            damaged ? cuvidDecodeStatus_Error_Concealed : cuvidDecodeStatus_Success;
        return CUDA_SUCCESS;
      });
    };
    reconfigure_decoder = [](CUvideodecoder handle, CUVIDRECONFIGUREDECODERINFO* info) {
      return locked("reconfigure_decoder", true, [&](auto& it) {
        auto* decoder = it.decoder_of(handle);
        if (!decoder) return CUDA_ERROR_INVALID_HANDLE;
        if (sequence_callbacks == 0) it.fault("a decoder was reconfigured outside of a sequence");
        if (info->ulWidth > decoder->info.ulMaxWidth ||
            info->ulHeight > decoder->info.ulMaxHeight ||
            !is_inside(info->display_area, info->ulWidth, info->ulHeight))
          return CUDA_ERROR_INVALID_VALUE;
        decoder->release();
        decoder->info.ulWidth = info->ulWidth;
        decoder->info.ulHeight = info->ulHeight;
        decoder->info.display_area = {info->display_area.left, info->display_area.top,
                                      info->display_area.right, info->display_area.bottom};
        decoder->info.ulTargetWidth = info->ulTargetWidth;
        decoder->info.ulTargetHeight = info->ulTargetHeight;
        decoder->info.ulNumDecodeSurfaces = info->ulNumDecodeSurfaces;
        return decoder->allocate() ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
      });
    };
    map_frame = [](CUvideodecoder handle, int index, unsigned long long* address, unsigned* pitch,
                   CUVIDPROCPARAMS* how) {
      return locked("map_frame", true, [&](auto& it) {
        auto* decoder = it.decoder_of(handle);
        if (!decoder) return CUDA_ERROR_INVALID_HANDLE;
        return it.map(*decoder, index, address, pitch, how->output_stream);
      });
    };
    unmap_frame = [](CUvideodecoder handle, unsigned long long address) {
      return locked("unmap_frame", true, [&](auto& it) {
        auto* decoder = it.decoder_of(handle);
        if (!decoder) return CUDA_ERROR_INVALID_HANDLE;
        for (auto& each : decoder->outputs)
          if (reinterpret_cast<unsigned long long>(each.memory) == address && each.mapped) {
            each.mapped = false;
            std::memset(each.memory, 0xEE, decoder->surface_bytes);
            return CUDA_SUCCESS;
          }
        it.fault("a surface was unmapped that is not mapped");
        return CUDA_ERROR_INVALID_VALUE;
      });
    };

    create_parser = [](CUvideoparser* made, CUVIDPARSERPARAMS* how) {
      return locked("create_parser", false, [&](auto& it) {
        auto parser = std::make_unique<fake_parser>(*how);
        *made = parser.get();
        it.parsers_.emplace(*made, std::move(parser));
        return CUDA_SUCCESS;
      });
    };
    // Without the lock: callbacks may wait for the stream.
    parse_data = [](CUvideoparser handle, CUVIDSOURCEDATAPACKET* data) {
      fake_parser* parser = nullptr;
      const auto failed = locked("parse_data", true, [&](auto& it) {
        const auto found = it.parsers_.find(handle);
        if (found == it.parsers_.end()) return CUDA_ERROR_INVALID_HANDLE;
        if (is_reactor()) it.fault("packets were parsed on a reactor, which that blocks");
        parser = found->second.get();
        return CUDA_SUCCESS;
      });
      if (failed != CUDA_SUCCESS) return failed;
      return parse(*parser, *data) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
    };
    destroy_parser = [](CUvideoparser handle) {
      return locked("destroy_parser", false, [&](auto& it) {
        if (it.parsers_.erase(handle) == 0) it.fault("a parser was destroyed twice");
        return CUDA_SUCCESS;
      });
    };
  }

  static bool parse(fake_parser& parser, const CUVIDSOURCEDATAPACKET& data) {
    auto* before = std::exchange(frame_of_callback, &parser.pending);
    bool good = parser.take_late();
    if (good && data.payload_size > 0) {
      const bool annex_b = data.payload_size > 3 && data.payload[0] == 0 && data.payload[1] == 0 &&
                           (data.payload[2] == 1 || (data.payload[2] == 0 && data.payload[3] == 1));
      const bool has_nals = parser.how.CodecType == cudaVideoCodec_H264 ||
                            parser.how.CodecType == cudaVideoCodec_HEVC;
      if (has_nals && !annex_b) self().fault("a packet is not in Annex B format");
      parser.late = fake_parser::sent_packet{{data.payload, data.payload + data.payload_size},
                                             data.timestamp};
    }
    if (good && (data.flags & CUVID_PKT_ENDOFSTREAM) != 0)
      good = parser.take_late() && parser.send(nullptr);
    frame_of_callback = before;
    return good;
  }
};

CUresult fake_nvcuvid::map(fake_decoder& decoder, int index, unsigned long long* address,
                           unsigned* pitch, CUstream stream) {
  const auto picture = decoder.pictures.find(index);
  if (picture == decoder.pictures.end()) return CUDA_ERROR_INVALID_VALUE;
  const auto free = std::ranges::find(decoder.outputs, false, &fake_decoder::output::mapped);
  if (free == decoder.outputs.end()) {
    fault("more surfaces were mapped than there are");
    return CUDA_ERROR_INVALID_VALUE;
  }
  free->mapped = true;
  *address = reinterpret_cast<unsigned long long>(free->memory);
  *pitch = decoder.pitch;
  struct fill {
    void* to;
    std::vector<std::byte> samples;
  };
  auto* work = new fill{free->memory, {}};
  work->samples.assign(decoder.surface_bytes, std::byte{0x55});
  surface_writer(*picture->second, decoder.info, decoder.pitch).write(work->samples);
  const auto run = [](void* argument) {
    const std::unique_ptr<fill> done(static_cast<fill*>(argument));
    std::memcpy(done->to, done->samples.data(), done->samples.size());
  };
  if (api().launch_host_func(stream, run, work) != cudaSuccess) {
    delete work;
    free->mapped = false;
    return CUDA_ERROR_UNKNOWN;
  }
  return CUDA_SUCCESS;
}

fake_nvcuvid::fake_nvcuvid(const options& how) : options_(how) {
  static const table functions;
  current_nvcuvid = this;
  replace_nvcuvid(&functions);
}

// What was abandoned still lives.
fake_nvcuvid::~fake_nvcuvid() {
  for (auto& [handle, decoder] : decoders_) decoder->release();
  forget_limits();
  replace_nvcuvid(nullptr);
  current_nvcuvid = nullptr;
}

CUresult fake_nvcuvid::enter(const char* function, bool needs_context) {
  fake_driver::call_library(function);
  ++calls_[function];
  const auto planned = failures_.find(function);
  if (planned != failures_.end() && planned->second.after-- == 0) {
    const auto with = planned->second.with;
    failures_.erase(planned);
    return with;
  }
  if (needs_context && pushed_contexts.empty()) {
    fault(std::string(function) + " was called without a context");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return CUDA_SUCCESS;
}

void fake_nvcuvid::fault(std::string what) {
  std::lock_guard lock(mutex_);
  faults_.push_back(std::move(what));
}

fake_nvcuvid::fake_decoder* fake_nvcuvid::decoder_of(CUvideodecoder handle) {
  const auto found = decoders_.find(handle);
  if (found != decoders_.end()) return found->second.get();
  fault("a decoder that does not exist was used");
  return nullptr;
}

void fake_nvcuvid::fail_next(const std::string& function, CUresult with, std::size_t after) {
  std::lock_guard lock(mutex_);
  failures_[function] = {with, after};
}

void fake_nvcuvid::lose_context(bool lost) {
  std::lock_guard lock(mutex_);
  lost_ = lost;
}

std::size_t fake_nvcuvid::calls(const std::string& function) const {
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

std::vector<std::string> fake_nvcuvid::faults() const {
  std::lock_guard lock(mutex_);
  return faults_;
}

fake_nvcuvid::live_objects fake_nvcuvid::live() const {
  std::lock_guard lock(mutex_);
  live_objects counts{
      .parsers = parsers_.size(), .decoders = decoders_.size(), .contexts = contexts_};
  for (const auto& [handle, decoder] : decoders_)
    counts.mapped += static_cast<std::size_t>(
        std::ranges::count(decoder->outputs, true, &fake_decoder::output::mapped));
  return counts;
}

std::size_t fake_nvcuvid::most_decoders() const {
  std::lock_guard lock(mutex_);
  return most_decoders_;
}

std::size_t fake_nvcuvid::depth() { return pushed_contexts.size(); }

}  // namespace lade::cuda
