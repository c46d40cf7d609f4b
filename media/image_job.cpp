#include "image_job.hpp"

#include <lade/media/slot.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace lade::media {

tensor_spec spec_of(const image_options& options, int width, int height) {
  const int channels = channels_of(options.colour);
  if (options.layout == image_layout::chw) return {options.type, {channels, height, width}};
  return {options.type, {height, width, channels}};
}

// The factor by which libjpeg reduces the crop, to no less than twice the result. libjpeg's filter
// is sharper than a triangle, so the resize must do most of the shrinking.
static int reduction_of(const image_crop& crop) {
  const bool turned = crop.turn.transposed;
  const double shrinking = std::min(crop.x.length / (turned ? crop.height : crop.width),
                                    crop.y.length / (turned ? crop.width : crop.height));
  for (int factor : {8, 4, 2})
    if (shrinking >= 2 * factor) return factor;
  return 1;
}

// The crop of an image that is reduced to 1 / `reduction`.
static image_crop shrunk(image_crop crop, int reduction, int width, int height) {
  crop.x = coarser(crop.x, {.size = width, .step = static_cast<double>(reduction)});
  crop.y = coarser(crop.y, {.size = height, .step = static_cast<double>(reduction)});
  return crop;
}

// Planes are decoded in full width from the top, rows only inside the crop. So planes are faster if
// the crop is most of the image, or if libjpeg reduces it.
static bool planes_are_faster(const image_crop& crop, int width, int height) {
  constexpr double most = 0.5;  // measured, with 500 x 375 photos
  const double all = static_cast<double>(width) * height;
  return reduction_of(crop) > 1 || crop.x.length * crop.y.length > most * all;
}

static jpeg_part part_of(const plane_plan& plan) {
  return {.left = plan.columns.first(),
          .top = plan.rows.first(),
          .right = plan.columns.last(),
          .bottom = plan.rows.last()};
}

static jpeg_part enlarged(const jpeg_part& part, double across, double down) {
  const auto times = [](int a, double b) { return static_cast<int>(a * b); };
  return {.left = times(part.left, across),
          .top = times(part.top, down),
          .right = times(part.right, across),
          .bottom = times(part.bottom, down)};
}

// The smallest part that contains both.
static jpeg_part hull(const jpeg_part& a, const jpeg_part& b) {
  return {.left = std::min(a.left, b.left),
          .top = std::min(a.top, b.top),
          .right = std::max(a.right, b.right),
          .bottom = std::max(a.bottom, b.bottom)};
}

static void decode_colours(image_lane& lane) {
  auto& jpeg = lane.jpeg;
  jpeg.start_colours(lane.resize.rows_kept());
  std::array<quick_colour_rows, 3> rows{quick_colour_rows(jpeg, 0), quick_colour_rows(jpeg, 1),
                                        quick_colour_rows(jpeg, 2)};
  std::array<resize_plane, 3> planes;
  for (std::size_t c = 0; c < planes.size(); ++c)
    planes[c] = {
        .rows = &rows[c], .plan = &lane.resize.luma(), .becomes = {static_cast<std::uint8_t>(c)}};
  lane.resize.run(planes, {}, lane.writer);
}

static void decode_luma(image_lane& lane) {
  quick_component_rows luma(lane.jpeg, 0, lane.resize.luma().columns.first());
  lane.resize.run(luma, 1, lane.writer);
}

// Resizes rows of Y, Cb and Cr.
template <class Rows, class Jpeg>
static void decode_yuv(image_lane& lane, Jpeg& jpeg) {
  Rows y(jpeg, 0, lane.resize.luma().columns.first());
  Rows cb(jpeg, 1, lane.resize.chroma().columns.first());
  Rows cr(jpeg, 2, lane.resize.chroma().columns.first());
  lane.resize.run_yuv(y, cb, cr, lane.writer);
}

// Opens a file with a reader, and closes it.
class opened_reader {
 public:
  opened_reader(image_reader& reader, const image_file& file) : reader_(reader) {
    try {
      reader.open(file);
    } catch (...) {
      reader.close();
      throw;
    }
  }
  opened_reader(const opened_reader&) = delete;
  ~opened_reader() { reader_.close(); }

 private:
  image_reader& reader_;
};

void image_job::begin(const sample& in, random draw, slot_of slot, const chosen_crop* chosen) {
  close();  // an image whose begin() threw is still open
  doing_ = "decode " + in.name();
  file_ = {.bytes = encoded_bytes(in, options_.field, doing_).bytes(),
           .doing = doing_,
           .max_pixels = options_.max_pixels,
           .strict = options_.strict};
  draw_ = draw;
  chosen_crop_.reset();
  if (chosen != nullptr) {
    check_chosen(*chosen, doing_);
    chosen_crop_ = *chosen;
  } else if (!options_.crop_field.empty()) {
    chosen_crop_ = stored_crop(in, options_.crop_field, doing_);
  }
  provide_slot_ = std::move(slot);
  reader_ = &worker_->reader_of(file_);
  way_ = reader_ == &worker_->jpeg ? begin_quickly() : way::by_reader;
  if (!is_quick()) lane_.jpeg.close();
}

// Reads the headers and plans the decoding, if lane_.jpeg supports the image.
image_job::way image_job::begin_quickly() {
  auto& jpeg = lane_.jpeg;
  if (!jpeg.open(file_, worker_->jpeg_tables)) return way::by_reader;
  if (jpeg.is_rgb() && options_.colour == image_colour::grey) return way::by_reader;
  const auto crop = crop_of(jpeg.width(), jpeg.height());
  make_slot(crop);
  const auto chosen = quick_way(crop);
  if (chosen == way::quick_planes) {
    begin_quick_planes(crop);
  } else {
    begin_writing(crop);
    const int kept = chosen == way::quick_luma ? lane_.resize.rows_kept() : 1;
    jpeg.begin(part_of(lane_.resize.luma()), kept);
  }
  return chosen;
}

image_job::way image_job::quick_way(const image_crop& crop) const {
  const auto& jpeg = lane_.jpeg;
  if (jpeg.is_grey() || options_.colour == image_colour::grey) return way::quick_luma;
  const bool may_use_planes = options_.fast && !jpeg.is_rgb();
  return may_use_planes && planes_are_faster(crop, jpeg.width(), jpeg.height())
             ? way::quick_planes
             : way::quick_colours;
}

void image_job::begin_quick_planes(const image_crop& crop) {
  auto& jpeg = lane_.jpeg;
  const int reduction = reduction_of(crop);
  jpeg.reduce(reduction);
  begin_writing(shrunk(crop, reduction, jpeg.columns(0).size, jpeg.rows(0, jpeg.height()).size));
  const auto luma = part_of(lane_.resize.luma());
  const auto across = jpeg.columns(1), down = jpeg.rows(1, luma.bottom);
  lane_.resize.plan_chroma(across, down);
  const auto chroma = enlarged(part_of(lane_.resize.chroma()), across.step, down.step);
  const int of_chroma = (lane_.resize.chroma().rows.widest() + 2) * static_cast<int>(down.step);
  jpeg.begin(hull(luma, chroma), lane_.resize.rows_kept() + of_chroma);
}

void image_job::begin_writing(const image_crop& crop) {
  lane_.writer.begin({.data = slot_.bytes(),
                      .width = crop.width,
                      .height = crop.height,
                      .channels = channels_of(options_.colour),
                      .bgr = options_.colour == image_colour::bgr,
                      .type = options_.type,
                      .layout = options_.layout,
                      .mean = options_.mean,
                      .stddev = options_.stddev},
                     {.mirrored = crop.turn.mirror_y, .transposed = crop.turn.transposed});
  lane_.resize.plan({.x = crop.x,
                     .y = crop.y,
                     .width = lane_.writer.row_width(),
                     .height = lane_.writer.row_count(),
                     .mirrored = crop.turn.mirror_x});
}

tensor image_job::finish(const partner_source& partner) {
  const closer at_end(*this);
  if (is_quick() && decode_quickly(partner)) return std::move(slot_);
  decode_by_reader();
  return std::move(slot_);
}

// Returns false if libjpeg-turbo must decode the image.
bool image_job::decode_quickly(const partner_source& partner) {
  if (partner)
    lane_.jpeg.interleave_with([&partner]() -> quick_jpeg* {
      auto* other = partner();
      return other != nullptr ? &other->lane_.jpeg : nullptr;
    });
  try {
    if (way_ == way::quick_colours) decode_colours(lane_);
    if (way_ == way::quick_luma) decode_luma(lane_);
    if (way_ == way::quick_planes) decode_yuv<quick_component_rows>(lane_, lane_.jpeg);
    return true;
  } catch (const needs_libjpeg&) {
    lane_.jpeg.close();
    return false;
  }
}

void image_job::decode_by_reader() {
  if (reader_ == &worker_->jpeg) counts_.jpegs_by_libjpeg.fetch_add(1, std::memory_order_relaxed);
  const opened_reader reader(*reader_, file_);
  const auto crop = crop_of(reader_->width(), reader_->height());
  make_slot(crop);
  decode_pixels(*reader_, crop);
  if (reader_->warned()) counts_.warnings.fetch_add(1, std::memory_order_relaxed);
}

void image_job::decode_pixels(image_reader& reader, const image_crop& crop) {
  const bool may_use_planes = &reader == &worker_->jpeg && options_.fast &&
                              options_.colour != image_colour::grey && worker_->jpeg.has_planes();
  if (may_use_planes && planes_are_faster(crop, reader.width(), reader.height()))
    decode_planes(crop);
  else
    decode_rows(reader, crop);
}

void image_job::decode_rows(image_reader& reader, const image_crop& crop) {
  begin_writing(crop);
  const int channels = reader.is_grey() ? 1 : channels_of(options_.colour);
  const auto& plan = lane_.resize.luma();
  reader.start_rows(channels, {.low = plan.columns.first(), .high = plan.columns.last()},
                    {.low = plan.rows.first(), .high = plan.rows.last()}, lane_.resize.rows_kept());
  lane_.resize.run(reader, channels, lane_.writer);
}

void image_job::decode_planes(const image_crop& crop) {
  auto& jpeg = worker_->jpeg;
  const int reduction = reduction_of(crop);
  jpeg.start_planes(reduction);
  const auto& luma = jpeg.plane(0);
  begin_writing(shrunk(crop, reduction, luma.x.size, luma.y.size));
  jpeg.end_planes(lane_.resize.luma().rows.last());
  lane_.resize.plan_chroma(jpeg.plane(1).x, jpeg.plane(1).y);
  decode_yuv<plane_rows>(lane_, jpeg);
}

image_crop image_job::crop_of(int width, int height) {
  worker_.record(width, height);
  const auto turn = orientation_of(options_.orient ? reader_->orientation(file_) : 1);
  if (chosen_crop_) return plan_chosen(*chosen_crop_, width, height, turn, doing_);
  return plan_crop(width, height, turn, options_, draw_);
}

// Called once per image: its size does not depend on the decoder.
void image_job::make_slot(const image_crop& crop) {
  worker_.record(crop.width, crop.height);
  const auto spec = spec_of(options_, crop.width, crop.height);
  if (slot_.spec() != spec || slot_.bytes() == nullptr) slot_ = provide_slot_(spec, doing_);
}

void image_job::close() noexcept {
  lane_.jpeg.close();
  way_ = way::by_reader;
  slot_ = {};
  provide_slot_ = nullptr;
}

}  // namespace lade::media
