#include <lade/buffer_pool.hpp>
#include <lade/detail/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/media/image.hpp>
#include <lade/media/picture.hpp>
#include <lade/media/slot.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "crop.hpp"
#include "decoders.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace lade::media {

// Refuses options, naming what they are for.
class option_check {
 public:
  explicit option_check(std::string_view doing) noexcept : doing_(doing) {}
  void operator()(bool condition, std::string_view why) const {
    if (!condition) throw error(errc::invalid_argument, doing_, why);
  }

 private:
  std::string_view doing_;
};

static bool between(double low, double value, double high) { return low <= value && value <= high; }

static void check_enums(const image_options& options, const option_check& require) {
  require(options.fit <= image_fit::random_crop, "fit is none of image_fit");
  require(options.colour <= image_colour::rgba, "colour is none of image_colour");
  require(options.layout <= image_layout::chw, "layout is none of image_layout");
}

static void check_fit(const image_options& options, const option_check& require) {
  constexpr int most = 1 << 15;
  const bool own_size = options.width == 0 && options.height == 0;
  require(own_size || (between(1, options.width, most) && between(1, options.height, most)),
          "width and height must both be given, up to 32768, or neither");
  require(!own_size || options.fit == image_fit::stretch,
          "fit needs a width and a height to crop to");
  require(options.shorter_side == 0 ||
              between(std::max(options.width, options.height), options.shorter_side, most),
          "shorter_side must be at least width and height, up to 32768");
  require(0 < options.min_area && options.min_area <= options.max_area && options.max_area <= 1,
          "min_area and max_area must be in order and in (0, 1]");
  require(0 < options.min_aspect && options.min_aspect <= options.max_aspect &&
              std::isfinite(options.max_aspect),
          "min_aspect and max_aspect must be in order and above 0");
  require(between(0, options.flip, 1), "flip must be in [0, 1]");
}

static void check_elements(const image_options& options, const option_check& require) {
  const auto type = options.type;
  const bool floats =
      type == element_type::f16 || type == element_type::bf16 || type == element_type::f32;
  require(floats || type == element_type::u8, "type must be u8, f16, bf16 or f32");
  const image_options defaults;
  require(floats || (options.mean == defaults.mean && options.stddev == defaults.stddev),
          "mean and stddev need the type f16, bf16 or f32");
  for (std::size_t c = 0; c < 3; ++c)
    require(std::isfinite(options.mean[c]) && std::isnormal(options.stddev[c]),
            "mean and stddev must be finite, stddev not 0");
}

void check_picture_options(const image_options& options, std::string_view doing) {
  const option_check require(doing);
  check_enums(options, require);
  check_fit(options, require);
  check_elements(options, require);
}

static void check_options(const image_options& options) {
  constexpr std::string_view doing = "make decode_image";
  check_picture_options(options, doing);
  const option_check require(doing);
  require(options.max_pixels > 0, "max_pixels must be above 0");
  require(!options.square_pixels, "square_pixels is for frames of videos");
  require(options.colour != image_colour::rgba, "images have no alpha: colour may not be rgba");
}

static tensor_spec spec_of(const image_options& options, int width, int height) {
  const int channels = channels_of(options.colour);
  if (options.layout == image_layout::chw) return {options.type, {channels, height, width}};
  return {options.type, {height, width, channels}};
}

static void begin_writing(decoders& worker, const image_crop& crop, const image_options& options,
                          const tensor& slot) {
  worker.writer.begin({.data = slot.bytes(),
                       .width = crop.width,
                       .height = crop.height,
                       .channels = channels_of(options.colour),
                       .bgr = options.colour == image_colour::bgr,
                       .type = options.type,
                       .layout = options.layout,
                       .mean = options.mean,
                       .stddev = options.stddev},
                      {.mirrored = crop.turn.mirror_y, .transposed = crop.turn.transposed});
  worker.resize.plan({.x = crop.x,
                      .y = crop.y,
                      .width = worker.writer.row_width(),
                      .height = worker.writer.row_count(),
                      .mirrored = crop.turn.mirror_x});
}

static void decode_rows(decoders& worker, image_reader& reader, const image_crop& crop,
                        const image_options& options, const tensor& slot) {
  begin_writing(worker, crop, options, slot);
  const int channels = reader.is_grey() ? 1 : channels_of(options.colour);
  const auto& plan = worker.resize.luma();
  reader.start_rows(channels, {.low = plan.columns.first(), .high = plan.columns.last()},
                    {.low = plan.rows.first(), .high = plan.rows.last()},
                    worker.resize.rows_kept());
  worker.resize.run(reader, channels, worker.writer);
}

// The factor by which libjpeg shrinks the part that is wanted, to no less than twice the result:
// its way is sharper than a triangle, and differs less the more of the shrinking is left to us.
static int reduction_of(const image_crop& crop) {
  const bool turned = crop.turn.transposed;
  const double shrinking = std::min(crop.x.length / (turned ? crop.height : crop.width),
                                    crop.y.length / (turned ? crop.width : crop.height));
  for (int factor : {8, 4, 2})
    if (shrinking >= 2 * factor) return factor;
  return 1;
}

// Planes are decoded in full width from the top, rows only where they are wanted: planes win where
// that is most of the image, or where libjpeg shrinks them.
static bool planes_are_faster(const image_crop& crop, int width, int height) {
  constexpr double most = 0.5;  // measured, with 500 x 375 photos
  const double all = static_cast<double>(width) * height;
  return reduction_of(crop) > 1 || crop.x.length * crop.y.length > most * all;
}

static void decode_jpeg_planes(decoders& worker, image_crop crop, const image_options& options,
                               const tensor& slot) {
  const int reduction = reduction_of(crop);
  worker.jpeg.start_planes(reduction);
  const auto& luma = worker.jpeg.plane(0);
  const double step = reduction;
  crop.x = coarser(crop.x, {.size = luma.x.size, .step = step});
  crop.y = coarser(crop.y, {.size = luma.y.size, .step = step});
  begin_writing(worker, crop, options, slot);
  worker.jpeg.end_planes(worker.resize.luma().rows.last());
  worker.resize.plan_chroma(worker.jpeg.plane(1).x, worker.jpeg.plane(1).y);
  plane_rows y(worker.jpeg, 0, worker.resize.luma().columns.first());
  plane_rows cb(worker.jpeg, 1, worker.resize.chroma().columns.first());
  plane_rows cr(worker.jpeg, 2, worker.resize.chroma().columns.first());
  worker.resize.run_yuv(y, cb, cr, worker.writer);
}

// Of the image that `reader`, one of the worker's, has opened.
static void decode_pixels(decoders& worker, image_reader& reader, const image_crop& crop,
                          const image_options& options, const tensor& slot) {
  const bool may_use_planes = &reader == &worker.jpeg && options.fast &&
                              options.colour != image_colour::grey && worker.jpeg.has_planes();
  if (may_use_planes && planes_are_faster(crop, reader.width(), reader.height()))
    decode_jpeg_planes(worker, crop, options, slot);
  else
    decode_rows(worker, reader, crop, options, slot);
}

static void decode_quick_colours(decoders& worker, quick_jpeg& jpeg, pixel_writer& out) {
  jpeg.start_colours(worker.resize.rows_kept());
  std::array<quick_colour_rows, 3> rows{quick_colour_rows(jpeg, 0), quick_colour_rows(jpeg, 1),
                                        quick_colour_rows(jpeg, 2)};
  std::array<resize_plane, 3> planes;
  for (std::size_t c = 0; c < planes.size(); ++c)
    planes[c] = {
        .rows = &rows[c], .plan = &worker.resize.luma(), .becomes = {static_cast<std::uint8_t>(c)}};
  worker.resize.run(planes, {}, out);
}

static void decode_quick_luma(decoders& worker, quick_jpeg& jpeg, pixel_writer& out) {
  quick_component_rows luma(jpeg, 0, worker.resize.luma().columns.first());
  worker.resize.run(luma, 1, out);
}

static void decode_quick_planes(decoders& worker, quick_jpeg& jpeg, pixel_writer& out) {
  quick_component_rows y(jpeg, 0, worker.resize.luma().columns.first());
  quick_component_rows cb(jpeg, 1, worker.resize.chroma().columns.first());
  quick_component_rows cr(jpeg, 2, worker.resize.chroma().columns.first());
  worker.resize.run_yuv(y, cb, cr, out);
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

// The smallest part that has both.
static jpeg_part hull(const jpeg_part& a, const jpeg_part& b) {
  return {.left = std::min(a.left, b.left),
          .top = std::min(a.top, b.top),
          .right = std::max(a.right, b.right),
          .bottom = std::max(a.bottom, b.bottom)};
}

static void decode_quickly_as_planes(decoders& worker, quick_jpeg& jpeg, image_crop crop,
                                     const image_options& options, const tensor& slot) {
  const int reduction = reduction_of(crop);
  jpeg.reduce(reduction);
  const double step = reduction;
  crop.x = coarser(crop.x, {.size = jpeg.columns(0).size, .step = step});
  crop.y = coarser(crop.y, {.size = jpeg.rows(0, jpeg.height()).size, .step = step});
  begin_writing(worker, crop, options, slot);
  const auto luma = part_of(worker.resize.luma());
  const auto across = jpeg.columns(1), down = jpeg.rows(1, luma.bottom);
  worker.resize.plan_chroma(across, down);
  const auto chroma = enlarged(part_of(worker.resize.chroma()), across.step, down.step);
  const int of_chroma = (worker.resize.chroma().rows.widest() + 2) * static_cast<int>(down.step);
  jpeg.begin(hull(luma, chroma), worker.resize.rows_kept() + of_chroma);
  decode_quick_planes(worker, jpeg, worker.writer);
}

// Of an image that has been opened. Throws not_quick.
static void decode_quick_pixels(decoders& worker, quick_jpeg& jpeg, const image_crop& crop,
                                const image_options& options, const tensor& slot) {
  const bool grey = jpeg.is_grey() || options.colour == image_colour::grey;
  if (!grey && options.fast && !jpeg.is_rgb() &&
      planes_are_faster(crop, jpeg.width(), jpeg.height()))
    return decode_quickly_as_planes(worker, jpeg, crop, options, slot);
  begin_writing(worker, crop, options, slot);
  jpeg.begin(part_of(worker.resize.luma()), grey ? worker.resize.rows_kept() : 1);
  if (grey)
    decode_quick_luma(worker, jpeg, worker.writer);
  else
    decode_quick_colours(worker, jpeg, worker.writer);
}

// Frees the scratch memory of the thread at its end, if an image or its result was large: most
// images are small, and a pool has many threads.
class scratch_release {
 public:
  scratch_release() = default;
  scratch_release(const scratch_release&) = delete;
  scratch_release& operator=(const scratch_release&) = delete;
  ~scratch_release() {
    if (large_) decoders::release();
  }

  void note(int width, int height) noexcept {
    large_ = large_ || image_reader::is_large(width, height);
  }

 private:
  bool large_ = false;
};

// Closes an image when it is done with or has failed.
template <class Reader>
class image_closer {
 public:
  image_closer(Reader& reader, scratch_release& at_end) noexcept
      : reader_(reader), at_end_(at_end) {}
  image_closer(const image_closer&) = delete;
  image_closer& operator=(const image_closer&) = delete;
  ~image_closer() {
    at_end_.note(reader_.width(), reader_.height());
    reader_.close();
  }

 private:
  Reader& reader_;
  scratch_release& at_end_;
};

// Nothing if libjpeg-turbo is to decode the image.
template <class F>
static std::optional<tensor> decode_quickly(decoders& worker, const image_file& file,
                                            const image_options& options, random draw, F slot_of,
                                            scratch_release& at_end) {
  auto& jpeg = worker.quick_jpegs[0];
  image_closer closer(jpeg, at_end);
  if (!jpeg.open(file, worker.jpeg_tables)) return std::nullopt;
  if (std::int64_t{jpeg.width()} * jpeg.height() > file.max_pixels) return std::nullopt;
  const auto turn = orientation_of(options.orient ? worker.jpeg.orientation(file) : 1);
  const auto crop = plan_crop(jpeg.width(), jpeg.height(), turn, options, draw);
  if (jpeg.is_rgb() && options.colour == image_colour::grey) return std::nullopt;
  at_end.note(crop.width, crop.height);
  tensor slot = slot_of(spec_of(options, crop.width, crop.height), file.doing);
  try {
    decode_quick_pixels(worker, jpeg, crop, options, slot);
    return slot;
  } catch (const not_quick&) {
    return std::nullopt;
  }
}

// Decodes `in` into the tensor that slot_of gives for the size of the result.
template <class F>
static tensor decode_into(const sample& in, const image_options& options,
                          std::atomic<std::uint64_t>& warnings, random draw, F slot_of) {
  auto& worker = decoders::of_this_thread();
  const auto doing = "decode " + in.name();
  const image_file file{.bytes = encoded_bytes(in, options.field, doing).bytes(),
                        .doing = doing,
                        .max_pixels = options.max_pixels,
                        .strict = options.strict};
  auto& reader = worker.reader_of(file);
  scratch_release at_end;
  if (&reader == &worker.jpeg)
    if (auto decoded = decode_quickly(worker, file, options, draw, slot_of, at_end))
      return *std::move(decoded);
  image_closer closer(reader, at_end);
  reader.open(file);
  const auto turn = orientation_of(options.orient ? reader.orientation(file) : 1);
  const auto crop = plan_crop(reader.width(), reader.height(), turn, options, draw);
  at_end.note(crop.width, crop.height);
  tensor slot = slot_of(spec_of(options, crop.width, crop.height), doing);
  decode_pixels(worker, reader, crop, options, slot);
  if (reader.warned()) warnings.fetch_add(1, std::memory_order_relaxed);
  return slot;
}

decode_image::decode_image(const image_options& options)
    : field_(std::make_shared<const std::string>(options.field)),
      options_(options),
      spec_(spec_of(options, options.width, options.height)),
      warnings_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  options_.field = *field_;
  check_options(options);
  options_.shorter_side = resolved_shorter_side(options);
}

void decode_image::operator()(const sample& in, const tensor& slot, random draw) const {
  decode_into(in, options_, *warnings_, draw, [&](const tensor_spec& spec, std::string_view doing) {
    require_slot_of(spec, slot, doing);
    return slot;
  });
}

tensor decode_image::operator()(const sample& in, random draw) const {
  return decode_into(in, options_, *warnings_, draw, [](const tensor_spec& spec, std::string_view) {
    return tensor(spec, allocate_now(spec.bytes()));
  });
}

// A copy of the decoder is the coroutine's.
static task<tensor> read_image(decode_image decode, std::shared_ptr<const byte_reader> from,
                               random draw) {
  auto content = co_await from->read_at(0, static_cast<std::size_t>(from->size()));
  auto& here = co_await detail::this_context_reference();
  if (here.runtime) co_await detail::continue_on(here.runtime->pool());
  if (here.stop.stop_requested()) throw error(errc::stopped, "decode " + from->name());
  co_return decode(sample(from->name()).with_data(std::move(content)), draw);
}

task<tensor> decode_image::read(std::shared_ptr<const byte_reader> from, random draw) const {
  return read_image(*this, std::move(from), draw);
}

}  // namespace lade::media
