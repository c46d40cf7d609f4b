#include "surface_decoder.hpp"

#include "../capture_guard.hpp"
#include "../check.hpp"
#include "../runtime_api.hpp"
#include "codings.hpp"

#include <lade/cuda/error.hpp>
#include <lade/cuda/nvdec/capabilities.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavcodec/codec_par.h>
#include <libavcodec/packet.h>
}

namespace lade::cuda {

surface_decoder::surface_decoder(std::shared_ptr<decoder_sessions> sessions,
                                 const media::stream_info& from, const stream& on,
                                 const surface_options& options, surface_consumer& to)
    : sessions_(std::move(sessions)),
      stream_(from),
      bytes_(from),
      on_(on),
      options_(options),
      to_(to),
      doing_(fmt::format("decode {} with NVDEC", from.name())) {
  if (!nvdec_codec(from.codec()))
    throw error(errc::unsupported, doing_, "this module does not decode the codec with NVDEC");
}

surface_decoder::~surface_decoder() {
  end_parser();
  if (!mapped_.empty()) abandon();
}

// The mapped surfaces cannot be unmapped any more.
void surface_decoder::abandon() noexcept {
  mapped_.clear();
  if (decoder_) decoder_->abandon();
  decoder_.reset();
}

void surface_decoder::end_parser() noexcept {
  if (!parser_) return;
  const context_scope scope(*sessions_->context);
  (void)nvcuvid().destroy_parser(std::exchange(parser_, nullptr));
}

void surface_decoder::begin() {
  end_parser();
  CUVIDPARSERPARAMS parameters{};
  parameters.CodecType = *nvdec_codec(stream_.codec());
  parameters.ulMaxNumDecodeSurfaces = 1;  // until the sequence is known
  parameters.ulMaxDisplayDelay = 1;       // the next picture decodes while one is mapped
  parameters.pUserData = this;
  parameters.pfnSequenceCallback = on_sequence;
  parameters.pfnDecodePicture = on_decode;
  parameters.pfnDisplayPicture = on_display;
  const context_scope scope(*sessions_->context, doing_);
  check_nvdec(nvcuvid().create_parser(&parser_, &parameters), doing_);
  starts_ = true;
}

void surface_decoder::send(const media::packet& next) {
  if ((next.get().flags & AV_PKT_FLAG_CORRUPT) != 0)
    throw error(errc::invalid_data, doing_, "a packet is not all there");
  const auto bytes = bytes_.convert(next, std::exchange(starts_, false));
  CUVIDSOURCEDATAPACKET data{};
  data.payload = reinterpret_cast<const unsigned char*>(bytes.data());
  data.payload_size = bytes.size();
  if (const auto pts = next.pts()) {
    data.flags = CUVID_PKT_TIMESTAMP;
    data.timestamp = *pts;
  }
  parse(data);
}

void surface_decoder::finish() {
  CUVIDSOURCEDATAPACKET end{};
  end.flags = CUVID_PKT_ENDOFSTREAM;
  parse(end);
}

void surface_decoder::parse(CUVIDSOURCEDATAPACKET& data) {
  const context_scope scope(*sessions_->context, doing_);
  const auto result = nvcuvid().parse_data(parser_, &data);
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  if (result != CUDA_SUCCESS) is_reusable_ = false;
  check_nvdec(result, doing_);
}

// Runs a callback. Returns its result, or 0, "failed", if it throws.
template <class F>
int surface_decoder::guarded(F callback) noexcept {
  if (failed_) return 0;
  try {
    return callback();
  } catch (...) {
    failed_ = std::current_exception();
    return 0;
  }
}

int surface_decoder::on_sequence(void* self, CUVIDEOFORMAT* format) noexcept {
  auto& decoder = *static_cast<surface_decoder*>(self);
  return decoder.guarded([&] { return decoder.begin_sequence(*format); });
}

int surface_decoder::on_decode(void* self, CUVIDPICPARAMS* picture) noexcept {
  auto& decoder = *static_cast<surface_decoder*>(self);
  return decoder.guarded([&] {
    if (!decoder.decoder_)
      throw error(errc::invalid_data, decoder.doing_, "a picture is in front of its sequence");
    const auto result = nvcuvid().decode_picture(decoder.decoder_->handle(), picture);
    if (result != CUDA_SUCCESS) decoder.is_reusable_ = false;
    check_nvdec(result, decoder.doing_);
    return 1;
  });
}

int surface_decoder::on_display(void* self, CUVIDPARSERDISPINFO* picture) noexcept {
  auto& decoder = *static_cast<surface_decoder*>(self);
  return decoder.guarded([&] {
    if (picture && decoder.to_.needs(picture->timestamp)) decoder.show(*picture);
    return 1;
  });
}

int surface_decoder::begin_sequence(const CUVIDEOFORMAT& sequence) {
  const auto format = format_for(sequence);
  if (decoder_ && decoder_->format() != format)
    throw error(errc::unsupported, doing_, "its size or coding changes on the way");
  if (!decoder_) decoder_ = sessions_->idle.take(format);
  shown_ = surface_for(sequence);
  return static_cast<int>(format.decode_surfaces);
}

// Throws error(unsupported) for a sequence that is left to the CPU.
static void require_decodable(const CUVIDEOFORMAT& sequence, device on,
                              const surface_options& options, const std::string& doing) {
  const auto coding = coding_of(sequence);
  const auto& area = sequence.display_area;
  const auto width = static_cast<int>(sequence.coded_width);
  const auto height = static_cast<int>(sequence.coded_height);
  if (sequence.bit_depth_chroma_minus8 != sequence.bit_depth_luma_minus8)
    throw error(errc::unsupported, doing, "luma and chroma have different depths");
  if (const auto reason = why_not_decodable(on, coding, width, height); !reason.empty())
    throw error(errc::unsupported, doing, reason);
  const bool inside = area.left >= 0 && area.top >= 0 && area.left < area.right &&
                      area.top < area.bottom && area.right <= width && area.bottom <= height;
  if (!inside)
    throw error(errc::invalid_data, doing, "its display area is outside of its pictures");
  const bool is_rgb =
      coding.chroma == 444 && sequence.video_signal_description.matrix_coefficients == 0;
  if (is_rgb) throw error(errc::unsupported, doing, "its planes may be red, green and blue");
  const bool odd = coding.chroma == 420 && (area.left % 2 != 0 || area.top % 2 != 0);
  if (odd)
    throw error(errc::unsupported, doing, "its display area begins inside of a chroma sample");
  if (std::int64_t{area.right - area.left} * (area.bottom - area.top) > options.max_pixels)
    throw error(errc::limit_exceeded, doing, "a picture has more than max_pixels");
}

// Pictures that are neither cropped nor resized are mapped whole, so that no filter touches them.
bool surface_decoder::maps_all() const noexcept {
  return options_.width == 0 && options_.crop.width == 0;
}

// The part of the coded picture that is mapped: the crop, or the display area.
decoder_format::rectangle surface_decoder::part_of(const CUVIDEOFORMAT& sequence) const {
  const auto& area = sequence.display_area;
  const auto& crop = options_.crop;
  if (crop.width == 0) return {area.left, area.top, area.right, area.bottom};
  const decoder_format::rectangle part{area.left + crop.left, area.top + crop.top,
                                       area.left + crop.left + crop.width,
                                       area.top + crop.top + crop.height};
  if (part.right > area.right || part.bottom > area.bottom)
    throw error(errc::invalid_argument, doing_,
                fmt::format("the crop is not inside of its pictures of {} x {}",
                            area.right - area.left, area.bottom - area.top));
  return part;
}

decoder_format surface_decoder::format_for(const CUVIDEOFORMAT& sequence) const {
  require_decodable(sequence, sessions_->on, options_, doing_);
  const auto all = decoder_format::rectangle{0, 0, static_cast<int>(sequence.coded_width),
                                             static_cast<int>(sequence.coded_height)};
  const auto display = maps_all() ? all : part_of(sequence);
  const bool resizes = options_.width > 0;
  constexpr unsigned in_flight = 2;  // more than the pictures that others refer to
  return {.codec = sequence.codec,
          .chroma = sequence.chroma_format,
          .output = *surface_format(coding_of(sequence)),
          .bits = 8U + sequence.bit_depth_luma_minus8,
          .coded_width = sequence.coded_width,
          .coded_height = sequence.coded_height,
          .display = display,
          .target_width =
              static_cast<unsigned>(resizes ? options_.width : display.right - display.left),
          .target_height =
              static_cast<unsigned>(resizes ? options_.height : display.bottom - display.top),
          .decode_surfaces = sequence.min_num_decode_surfaces + in_flight,
          .output_surfaces = static_cast<unsigned>(options_.surfaces)};
}

// The container's colours apply if the stream states none. FFmpeg's enumerators are the numbers of
// H.273.
surface surface_decoder::surface_for(const CUVIDEOFORMAT& sequence) const {
  const auto coding = coding_of(sequence);
  const auto part = part_of(sequence);
  const auto& colour = sequence.video_signal_description;
  const auto& container = stream_.parameters();
  constexpr int unspecified = 2;
  const bool resizes = options_.width > 0;
  surface shown{.width = resizes ? options_.width : part.right - part.left,
                .height = resizes ? options_.height : part.bottom - part.top,
                .left = maps_all() ? part.left : 0,
                .top = maps_all() ? part.top : 0,
                .chroma = coding.chroma,
                .bits = coding.bits};
  shown.matrix = colour.matrix_coefficients;
  if (shown.matrix == unspecified || shown.matrix == 0)
    shown.matrix = container.color_space == AVCOL_SPC_RGB ? unspecified : container.color_space;
  shown.full_range = colour.video_full_range_flag != 0 || container.color_range == AVCOL_RANGE_JPEG;
  return shown;
}

void surface_decoder::show(const CUVIDPARSERDISPINFO& picture) {
  unmap_passed();
  if (mapped_.size() >= decoder_->format().output_surfaces) block_for_surface();
  mapped_.push_back({0, unused_event()});
  unsigned pitch = 0;
  try {
    mapped_.back().address = map(picture, pitch);
  } catch (...) {
    mapped_.pop_back();
    throw;
  }
  deliver(picture, pitch);
}

// The event is recorded even if the consumer throws: it may have enqueued part of its work.
void surface_decoder::deliver(const CUVIDPARSERDISPINFO& picture, unsigned pitch) {
  std::exception_ptr failed;
  try {
    require_whole(picture.picture_index);
    to_.consume(picture.timestamp, at(mapped_.back().address, pitch));
  } catch (...) {
    failed = std::current_exception();
  }
  try {
    mapped_.back().passed.record(on_);
  } catch (...) {
    unmap_after_stream();
    throw;
  }
  if (failed) std::rethrow_exception(failed);
}

// Fallback if no event can be recorded, perhaps for lack of memory: waits for the whole stream.
void surface_decoder::unmap_after_stream() {
  capture_guard beside_captures;
  if (api().stream_synchronize(on_.handle()) != cudaSuccess) return abandon();
  while (!mapped_.empty()) unmap_first();
}

unsigned long long surface_decoder::map(const CUVIDPARSERDISPINFO& picture, unsigned& pitch) {
  CUVIDPROCPARAMS parameters{};
  parameters.progressive_frame = picture.progressive_frame;
  parameters.second_field = picture.repeat_first_field + 1;
  parameters.top_field_first = picture.top_field_first;
  parameters.unpaired_field = picture.repeat_first_field < 0 ? 1 : 0;
  parameters.output_stream = on_.handle();
  unsigned long long address = 0;
  const auto result =
      nvcuvid().map_frame(decoder_->handle(), picture.picture_index, &address, &pitch, &parameters);
  if (result != CUDA_SUCCESS) is_reusable_ = false;
  check_nvdec(result, doing_);
  return address;
}

// Throws if decoding a mapped picture has failed. Not all codecs and GPUs report that.
void surface_decoder::require_whole(int picture_index) {
  CUVIDGETDECODESTATUS status{};
  if (nvcuvid().get_decode_status(decoder_->handle(), picture_index, &status) != CUDA_SUCCESS)
    return;
  if (status.decodeStatus == cuvidDecodeStatus_Error ||
      status.decodeStatus == cuvidDecodeStatus_Error_Concealed)
    throw error(errc::invalid_data, doing_, "a picture is damaged");
}

surface surface_decoder::at(unsigned long long address, unsigned pitch) const {
  auto result = shown_;
  const auto& format = decoder_->format();
  const std::int64_t rows = (format.target_height + 1) / 2 * 2;  // from a plane to the next
  const int bytes = format.bits > 8 ? 2 : 1;
  const bool planar = result.chroma == 444;
  result.pitch = pitch;
  for (int i = 0; i < (planar ? 3 : 2); ++i) {
    const int top = i > 0 && !planar ? result.top / 2 : result.top;
    const auto offset = (i * rows + top) * pitch + std::int64_t{result.left} * bytes;
    result.planes[static_cast<std::size_t>(i)] =
        reinterpret_cast<const void*>(address + static_cast<unsigned long long>(offset));
  }
  return result;
}

event surface_decoder::unused_event() {
  if (spare_.empty()) return event(on_.on());
  auto taken = std::move(spare_.back());
  spare_.pop_back();
  return taken;
}

void surface_decoder::unmap_first() {
  auto first = std::move(mapped_.front());
  mapped_.pop_front();
  const context_scope scope(*sessions_->context);
  const bool unmapped = scope.is_current() &&
                        nvcuvid().unmap_frame(decoder_->handle(), first.address) == CUDA_SUCCESS;
  if (!unmapped) {
    is_reusable_ = false;
    decoder_->abandon();
    throw error(errc::unsupported, doing_, "a surface cannot be unmapped");
  }
  spare_.push_back(std::move(first.passed));
}

void surface_decoder::unmap_passed() {
  while (!mapped_.empty() && mapped_.front().passed.is_complete()) unmap_first();
}

// Blocks until a surface is free: a callback of the parser cannot await. This happens only if one
// packet shows several pictures, since wait_for_surface() frees one surface before each packet.
void surface_decoder::block_for_surface() {
  capture_guard beside_captures;
  check(api().event_synchronize(mapped_.front().passed.handle()), doing_);
  unmap_first();
}

task<> surface_decoder::wait_for_surface() {
  unmap_passed();
  if (mapped_.size() < static_cast<std::size_t>(options_.surfaces)) co_return;
  auto first = mapped_.front().passed;
  co_await first;
  unmap_passed();
}

// Waits for the last event. If no callback can be queued, perhaps for lack of memory, blocks the
// thread.
task<> surface_decoder::wait_for_last() {
  auto last = mapped_.back().passed;
  try {
    co_await last.uninterruptible();
    co_return;
  } catch (const error& failed) {
    if (failed.code() == condition::device_lost) throw;
  }
  capture_guard beside_captures;
  check(api().event_synchronize(last.handle()), doing_);
}

task<> surface_decoder::settle() {
  end_parser();
  if (!mapped_.empty()) {
    try {
      co_await wait_for_last();
      while (!mapped_.empty()) unmap_first();
    } catch (...) {
      abandon();
      throw;
    }
  }
  if (decoder_ && is_reusable_) sessions_->idle.give_back(std::move(decoder_));
  decoder_.reset();
}

}  // namespace lade::cuda
