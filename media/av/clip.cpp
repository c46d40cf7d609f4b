#include <lade/buffer_pool.hpp>
#include <lade/detail/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/slot.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "codec_pool.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace lade::media {

static void require_clip_option(bool condition, std::string_view why) {
  if (!condition) throw error(errc::invalid_argument, "make decode_clip", why);
}

static void check_sampling(const clip_sampling& how) {
  require_clip_option(how.frames >= 1 && how.frames <= 1 << 16, "frames must be 1 to 65536");
  require_clip_option(how.fps == 0 || (how.fps >= 1e-3 && how.fps <= 1e3),
                      "fps must be 0, or 0.001 to 1000");
  require_clip_option(how.stride >= 1 && how.stride <= 1 << 16, "stride must be 1 to 65536");
  require_clip_option(how.fps == 0 || how.stride == 1, "fps and stride cannot both be given");
}

// A clip's frames, if it starts at a given one.
class clip_frames {
 public:
  clip_frames(const packet_index& of, const clip_sampling& how)
      : of_(of),
        how_(how),
        step_(how.fps > 0 ? rational(1) / rational::nearest(how.fps) : rational()) {}

  std::vector<std::int64_t> from(std::int64_t start) const {
    std::vector<std::int64_t> numbers;
    numbers.reserve(static_cast<std::size_t>(how_.frames));
    for (int i = 0; i < how_.frames; ++i) {
      const auto number = how_.fps > 0 ? at_time(start, i) : start + std::int64_t{i} * how_.stride;
      if (number >= of_.size()) break;
      numbers.push_back(number);
    }
    fill_up(numbers);
    return numbers;
  }

  // The last frame from which a clip does not reach beyond the end; 0 if there is none.
  std::int64_t last_start() const {
    const auto spacing = std::int64_t{how_.frames} - 1;
    if (how_.fps == 0) return std::max<std::int64_t>(0, of_.size() - 1 - spacing * how_.stride);
    const auto latest = of_.time(of_.size() - 1) - rational(spacing) * step_;
    return of_.frame_at(latest).value_or(0);
  }

 private:
  std::int64_t at_time(std::int64_t start, int i) const {
    return of_.frame_at(of_.time(start) + rational(i) * step_).value_or(of_.size());
  }

  // Adds what stands for the frames behind the end of the video.
  void fill_up(std::vector<std::int64_t>& numbers) const {
    const auto inside = numbers.size();
    const auto all = static_cast<std::size_t>(how_.frames);
    if (inside < all && how_.end == clip_end::refuse)
      throw error(
          errc::invalid_data, "sample a clip of " + of_.stream().name(),
          "it ends after " + std::to_string(inside) + " of " + std::to_string(all) + " frames");
    for (auto i = inside; i < all; ++i)
      numbers.push_back(how_.end == clip_end::loop ? numbers[i % inside] : of_.size() - 1);
  }

  const packet_index& of_;
  const clip_sampling& how_;
  rational step_;  // between frames, in seconds
};

static std::int64_t random_start(const packet_index& of, std::int64_t last, bool at_key,
                                 random& draw) {
  const auto count = static_cast<std::uint64_t>(last) + 1;
  if (!at_key) return static_cast<std::int64_t>(draw.below(count));
  std::vector<std::int64_t> keys;
  for (std::int64_t i = 0; i <= last; ++i)
    if (of.is_key(i)) keys.push_back(i);
  return keys.empty() ? 0 : keys[draw.below(keys.size())];
}

static std::vector<std::int64_t> spread_frames(const packet_index& of, int count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back((2 * i + 1) * of.size() / (2 * count));
  return numbers;
}

std::vector<std::int64_t> sample_clip(const packet_index& of, const clip_sampling& how,
                                      random& draw) {
  check_sampling(how);
  const clip_frames frames(of, how);
  switch (how.position) {
    case clip_position::spread: return spread_frames(of, how.frames);
    case clip_position::first: return frames.from(0);
    case clip_position::centre: return frames.from(frames.last_start() / 2);
    case clip_position::random:
    case clip_position::random_key: break;
  }
  const bool at_key = how.position == clip_position::random_key;
  return frames.from(random_start(of, frames.last_start(), at_key, draw));
}

static int clip_channels(const clip_options& options) {
  return options.colour == image_colour::grey ? 1 : 3;
}

static tensor_spec clip_spec(const clip_options& options) {
  const int t = options.sampling.frames;
  const int c = clip_channels(options);
  const int h = options.height;
  const int w = options.width;
  switch (options.layout) {
    case clip_layout::thwc: return {options.type, {t, h, w, c}};
    case clip_layout::tchw: return {options.type, {t, c, h, w}};
    case clip_layout::cthw: return {options.type, {c, t, h, w}};
  }
  return {};
}

// The part of a clip that is frame `t`: [h, w, c] or [c, h, w].
static tensor frame_slot(const tensor& clip, clip_layout layout, std::int64_t t) {
  if (layout != clip_layout::cthw) return clip[t];
  const auto& shape = clip.shape();
  const auto& strides = clip.strides();
  const auto offset = static_cast<std::ptrdiff_t>(t * strides[1]) *
                      static_cast<std::ptrdiff_t>(element_bytes(clip.type()));
  return {{clip.type(), {shape[0], shape[2], shape[3]}},
          {strides[0], strides[2], strides[3]},
          clip.memory(),
          clip.bytes() + offset};
}

static image_options frame_options_of(const clip_options& options) {
  return {.width = options.width,
          .height = options.height,
          .fit = options.fit,
          .shorter_side = options.shorter_side,
          .min_area = options.min_area,
          .max_area = options.max_area,
          .min_aspect = options.min_aspect,
          .max_aspect = options.max_aspect,
          .flip = options.flip,
          .colour = options.colour,
          .layout = options.layout == clip_layout::thwc ? image_layout::hwc : image_layout::chw,
          .type = options.type,
          .mean = options.mean,
          .stddev = options.stddev,
          .orient = options.orient};
}

decode_clip::decode_clip(const clip_options& options)
    : texts_(std::make_shared<const std::array<std::string, 3>>(std::array<std::string, 3>{
          std::string(options.field), std::string(options.decoding.decoder),
          std::string(options.decoding.options)})),
      options_(options),
      image_(frame_options_of(options)),
      spec_(clip_spec(options)),
      damaged_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  options_.field = (*texts_)[0];
  options_.decoding.decoder = (*texts_)[1];
  options_.decoding.options = (*texts_)[2];
  check_sampling(options.sampling);
  require_clip_option(options.width > 0 && options.height > 0, "width and height must be given");
  (void)decode_image(image_);  // checks what the two have in common
  check_decode_options(options.decoding, "make decode_clip");
}

bool decode_clip::is_random() const noexcept {
  const auto position = options_.sampling.position;
  return position == clip_position::random || position == clip_position::random_key ||
         options_.fit == image_fit::random_crop;
}

void decode_clip::operator()(const sample& in, const tensor& slot, random draw) const {
  const auto doing = "decode " + in.name();
  require_slot_of(spec_, slot, doing);
  const video opened(encoded_bytes(in, options_.field, doing), in.name(),
                     {.demuxing = {.damage = options_.decoding.damage}});
  const auto numbers = sample_clip(opened.index(), options_.sampling, draw);
  write_clip(opened, numbers, slot, draw);
}

void decode_clip::write_clip(const video& from, std::span<const std::int64_t> numbers,
                             const tensor& slot, random draw) const {
  selection_statistics counted;
  from.for_each_frame(
      numbers,
      [&](std::int64_t number, const frame& decoded) {
        for (std::size_t t = 0; t < numbers.size(); ++t)
          if (numbers[t] == number)
            write_frame(decoded, image_,
                        frame_slot(slot, options_.layout, static_cast<std::int64_t>(t)), draw);
      },
      options_.decoding, &counted);
  damaged_->fetch_add(from.damaged() + counted.damaged, std::memory_order_relaxed);
}

tensor decode_clip::operator()(const sample& in, random draw) const {
  tensor clip(spec_, allocate_now(spec_.bytes()));
  (*this)(in, clip, draw);
  return clip;
}

// Whether the file begins as an MP4 file does (ISO/IEC 14496-12, 4.3).
static bool begins_with_file_type(const buffer& file) noexcept {
  return file.size() >= 8 && file.text().substr(4, 4) == "ftyp";
}

std::size_t decode_clip::memory_to_write(const sample& in) const {
  constexpr std::size_t pictures = 12;
  constexpr std::int64_t usual_pixels = 1280 * 720;
  const auto pixels =
      static_cast<std::size_t>(std::min(usual_pixels, options_.decoding.max_pixels));
  const auto& file = encoded_bytes(in, options_.field, "decode");
  return pictures * pixels * 3 / 2 + (begins_with_file_type(file) ? 0 : file.size());
}

std::size_t decode_clip::memory_needed(const sample& in) const {
  return spec_.bytes() + memory_to_write(in);
}

// The copy of the decoder is the coroutine's.
task<tensor> decode_clip::read_clip(decode_clip decode, std::shared_ptr<const byte_reader> from,
                                    random draw) {
  const video_options how{.demuxing = {.damage = decode.options_.decoding.damage}};
  auto opened = co_await video::open(std::move(from), how);
  const auto numbers = sample_clip(opened.index(), decode.options_.sampling, draw);
  opened = co_await opened.fetch(numbers);
  const auto memory = co_await allocate(decode.spec_.bytes());
  const tensor clip(decode.spec_, memory);
  auto& here = co_await detail::this_context_reference();
  if (here.runtime != nullptr) co_await detail::continue_on(here.runtime->pool());
  decode.write_clip(opened, numbers, clip, draw);
  co_return clip;
}

task<tensor> decode_clip::read(std::shared_ptr<const byte_reader> from, random draw) const {
  return read_clip(*this, std::move(from), draw);
}

}  // namespace lade::media
