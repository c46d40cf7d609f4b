#include <lade/buffer_pool.hpp>
#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/picture.hpp>
#include <lade/media/slot.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "codec_pool.hpp"

#include <algorithm>
#include <compare>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

static constexpr std::string_view making_clips = "make decode_clip";

static void require_clip_option(bool condition, std::string_view reason, std::string_view doing) {
  if (!condition) throw error(errc::invalid_argument, doing, reason);
}

// Bounds the numerator and denominator, so that multiples up to 65,536 do not overflow.
static bool is_rate(const rational& fps) noexcept {
  constexpr std::int64_t largest = std::int64_t{1} << 40;
  return fps >= rational(1, 1000) && fps <= 1000 && fps.numerator() <= largest &&
         fps.denominator() <= largest;
}

static void check_sampling(const clip_sampling& sampling, std::string_view doing) {
  const auto require = [&](bool condition, std::string_view reason) {
    require_clip_option(condition, reason, doing);
  };
  require(sampling.frames >= 1 && sampling.frames <= 1 << 16, "frames must be 1 to 65536");
  require(sampling.clips >= 1 && sampling.clips <= 1 << 10, "clips must be 1 to 1024");
  require(sampling.position <= clip_position::spaced, "position is no value of clip_position");
  require(sampling.fps == 0 || is_rate(sampling.fps), "fps must be 0, or 0.001 to 1000");
  require(sampling.stride >= 1 && sampling.stride <= 1 << 16, "stride must be 1 to 65536");
  require(sampling.fps == 0 || sampling.stride == 1, "fps and stride cannot both be set");
  require(sampling.end <= clip_end::refuse, "end is no value of clip_end");
  if (sampling.clips == 1) return;
  using enum clip_position;
  const bool differ =
      !sampling.start && (sampling.position == random || sampling.position == random_key ||
                          sampling.position == spaced);
  require(differ, "several clips need the position random, random_key or spaced");
  require(sampling.end != clip_end::shorten, "several clips cannot be shortened");
}

// The duration of a frame, if the stream states it and its time base cannot represent it exactly.
// Empty if the time base is too coarse to recognise rounded times.
static std::optional<rational> rounded_duration(const stream_info& stream) {
  constexpr std::int64_t fewest_units = 4;
  const auto rate = stream.frame_rate();
  if (!rate || *rate <= 0) return std::nullopt;
  const auto duration = rational(1) / *rate;
  const auto units = floor_units(duration, stream.time_base());
  if (units < fewest_units || units == ceil_units(duration, stream.time_base()))
    return std::nullopt;
  return duration;
}

// The distance in time of two frames: the difference of their timestamps, or, if these are rounded
// but agree with the stated frame rate to one unit, the exact distance by that rate. The latter
// holds for all frames of a video with a constant rate, and for some pairs of frames of others.
class frame_distances {
 public:
  explicit frame_distances(const packet_index& index)
      : index_(index),
        unit_(index.stream().time_base()),
        rounded_(rounded_duration(index.stream())) {
    constexpr std::int64_t places = 16;
    is_constant_ = rounded_ && index.size() > 0;
    for (std::int64_t i = 1; is_constant_ && i <= places; ++i)
      is_constant_ = agrees(0, (index.size() - 1) * i / places);
  }

  // Compares a distance with a time. `to`: the number of frames denotes the end of the video.
  std::strong_ordering compare(std::int64_t from, std::int64_t to, const rational& time) const {
    if (rounded_ && agrees(from, to)) {
      const auto order = compare_nearly(exact(from, to), time);
      if (is_constant_ || order == 0) return order;
    }
    return rational(units(from, to)) * unit_ <=> time;
  }

 private:
  // Treats nearly equal times as equal: FFmpeg approximates Matroska's frame duration, which is in
  // nanoseconds, by a fraction. Times at usual rates, up to 120000/1001, are equal or differ by at
  // least 8 microseconds.
  static std::strong_ordering compare_nearly(const rational& a, const rational& b) {
    const rational step(1, 250'000);
    const auto steps = floor_units(a, step) - floor_units(b, step);
    return steps >= -1 && steps <= 1 ? std::strong_ordering::equal : steps <=> 0;
  }

  // The duration of the last frame is rounded, too.
  bool agrees(std::int64_t from, std::int64_t to) const {
    const std::int64_t margin = to < index_.size() ? 1 : 2;
    const auto stated = units(from, to);
    return floor_units(exact(from, to), unit_) >= stated - margin &&
           ceil_units(exact(from, to), unit_) <= stated + margin;
  }

  rational exact(std::int64_t from, std::int64_t to) const {
    return rational(to - from) * *rounded_;
  }

  std::int64_t units(std::int64_t from, std::int64_t to) const {
    const auto end = to < index_.size() ? index_.pts(to) : floor_units(index_.end(), unit_);
    return end - index_.pts(from);
  }

  const packet_index& index_;
  rational unit_;
  std::optional<rational> rounded_;
  bool is_constant_ = false;
};

// The frames of a clip, by its first frame.
class clip_frames {
 public:
  clip_frames(const packet_index& index, const clip_sampling& sampling)
      : index_(index),
        sampling_(sampling),
        step_(sampling.fps > 0 ? rational(1) / sampling.fps : rational()),
        distances_(index) {
    check_sampling(sampling, "sample a clip");
    if (index.size() == 0)
      throw error(errc::invalid_data, "sample a clip of " + index.stream().name(),
                  "it has no frames");
  }

  std::vector<std::int64_t> from(std::int64_t start) const {
    std::vector<std::int64_t> numbers;
    numbers.reserve(static_cast<std::size_t>(sampling_.frames));
    for (int i = 0; i < sampling_.frames; ++i) {
      const auto number =
          sampling_.fps > 0 ? at_time(start, i) : start + std::int64_t{i} * sampling_.stride;
      if (number >= index_.size()) break;
      numbers.push_back(number);
    }
    fill_up(numbers);
    return numbers;
  }

  // The last start from which a clip fits into the video; 0 if there is none.
  std::int64_t last_start() const {
    const int spacing = sampling_.frames - 1;
    const auto last = index_.size() - 1;
    if (sampling_.fps == 0)
      return std::max<std::int64_t>(0, last - std::int64_t{spacing} * sampling_.stride);
    const auto time = rational(spacing) * step_;
    auto number =
        frame_at(index_.pts(last) - ceil_units(time, index_.stream().time_base())).value_or(0);
    while (number < last && distances_.compare(number + 1, last, time) >= 0) ++number;
    while (number > 0 && distances_.compare(number, last, time) < 0) --number;
    return number;
  }

  // The frame that is shown at a time; the first frame if the video starts later.
  std::int64_t start_at(const rational& time) const {
    if (time <= index_.time(0)) return 0;
    if (const auto number = index_.frame_at(time)) return *number;
    throw error(errc::invalid_data,
                fmt::format("sample a clip at {} s of {}", to_string(time), index_.stream().name()),
                fmt::format("it ends at {} s", to_string(index_.end())));
  }

 private:
  std::optional<std::int64_t> frame_at(std::int64_t pts) const {
    return index_.frame_at(rational(pts) * index_.stream().time_base());
  }

  // Frame `i` of the clip: the one shown at its time. After the end, the number of frames.
  std::int64_t at_time(std::int64_t start, int i) const {
    if (i == 0) return start;
    const auto time = rational(i) * step_;
    const auto end = index_.size();
    auto number =
        frame_at(index_.pts(start) + floor_units(time, index_.stream().time_base())).value_or(end);
    while (number < end && distances_.compare(start, number + 1, time) <= 0) ++number;
    while (number > start && distances_.compare(start, number, time) > 0) --number;
    return number;
  }

  // Appends replacements for the frames after the end of the video.
  void fill_up(std::vector<std::int64_t>& numbers) const {
    const auto inside = numbers.size();
    const auto all = static_cast<std::size_t>(sampling_.frames);
    if (sampling_.end == clip_end::shorten) return;
    if (inside < all && sampling_.end == clip_end::refuse)
      throw error(errc::invalid_data, "sample a clip of " + index_.stream().name(),
                  fmt::format("it ends after {} of {} frames", inside, all));
    for (auto i = inside; i < all; ++i)
      numbers.push_back(sampling_.end == clip_end::loop ? numbers[i % inside] : index_.size() - 1);
  }

  const packet_index& index_;
  const clip_sampling& sampling_;
  rational step_;  // time between frames of the clip, in seconds
  frame_distances distances_;
};

static std::int64_t random_start(const packet_index& index, std::int64_t last, bool at_key,
                                 random& draw) {
  const auto count = static_cast<std::uint64_t>(last) + 1;
  if (!at_key) return static_cast<std::int64_t>(draw.below(count));
  std::vector<std::int64_t> keys;
  for (std::int64_t i = 0; i <= last; ++i)
    if (index.is_key(i)) keys.push_back(i);
  return keys.empty() ? 0 : keys[draw.below(keys.size())];
}

static std::vector<std::int64_t> spread_frames(const packet_index& index, int count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i)
    numbers.push_back((2 * i + 1) * index.size() / (2 * count));
  return numbers;
}

// The first frame of clip `i`.
static std::int64_t start_of_clip(int i, const clip_frames& frames, const packet_index& index,
                                  const clip_sampling& sampling, random& draw) {
  if (sampling.start) return frames.start_at(*sampling.start);
  const auto last = frames.last_start();
  switch (sampling.position) {
    case clip_position::centre: return last / 2;
    case clip_position::spaced: return sampling.clips == 1 ? 0 : last * i / (sampling.clips - 1);
    case clip_position::random: return random_start(index, last, false, draw);
    case clip_position::random_key: return random_start(index, last, true, draw);
    case clip_position::first:
    case clip_position::spread: break;
  }
  return 0;
}

std::vector<std::int64_t> sample_clip(const packet_index& of, const clip_sampling& how,
                                      random& draw) {
  const clip_frames frames(of, how);
  if (how.position == clip_position::spread && !how.start) return spread_frames(of, how.frames);
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < how.clips; ++i) {
    const auto clip = frames.from(start_of_clip(i, frames, of, how, draw));
    numbers.insert(numbers.end(), clip.begin(), clip.end());
  }
  return numbers;
}

std::vector<std::int64_t> clip_from(const packet_index& of, const clip_sampling& how,
                                    std::int64_t first) {
  const clip_frames frames(of, how);
  (void)of.pts(first);  // throws if the video has no such frame
  return frames.from(first);
}

static dimensions clip_shape(const clip_options& options, std::int64_t t) {
  const int c = channels_of(options.colour);
  const int h = options.height;
  const int w = options.width;
  switch (options.layout) {
    case clip_layout::thwc: return {t, h, w, c};
    case clip_layout::tchw: return {t, c, h, w};
    case clip_layout::cthw: return {c, t, h, w};
  }
  return {};
}

static tensor_spec clip_spec(const clip_options& options, std::int64_t frames) {
  const auto one = clip_shape(options, frames);
  const int clips = options.sampling.clips;
  return {options.type, clips == 1 ? one : one.prepend(clips)};
}

// The part of the clip's tensor for frame `t`: [h, w, c] or [c, h, w].
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
          .orient = options.orient,
          .square_pixels = options.square_pixels};
}

static void require_clip_slot(const clip_options& options, const tensor_spec& spec,
                              const tensor& slot, std::string_view doing) {
  if (options.sampling.end == clip_end::shorten)
    throw error(errc::invalid_argument, doing, "clips of different lengths have no slot");
  require_slot_of(spec, slot, doing);
}

// A slot of the clips, counted over all of them, and its frame. Ordered by frame.
struct clip_slot {
  std::int64_t frame = 0;
  std::int64_t slot = 0;
  auto operator<=>(const clip_slot&) const = default;
};

static std::vector<clip_slot> slots_of(std::span<const std::int64_t> numbers) {
  std::vector<clip_slot> slots;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    slots.push_back({numbers[i], static_cast<std::int64_t>(i)});
  std::ranges::sort(slots);
  return slots;
}

struct decode_clip::texts {
  std::string field;
  std::string decoder;
  std::string decoder_options;
  std::string start_field;
  std::string index_directory;
};

decode_clip::decode_clip(const clip_options& options)
    : texts_(std::make_shared<const texts>(
          texts{std::string(options.field), std::string(options.decoding.decoder),
                std::string(options.decoding.options), std::string(options.start_field),
                std::string(options.index_directory)})),
      options_(options),
      image_(frame_options_of(options)),
      spec_(clip_spec(options,
                      options.sampling.end == clip_end::shorten ? 0 : options.sampling.frames)),
      damaged_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  options_.field = texts_->field;
  options_.decoding.decoder = texts_->decoder;
  options_.decoding.options = texts_->decoder_options;
  options_.start_field = texts_->start_field;
  options_.index_directory = texts_->index_directory;
  check_sampling(options.sampling, making_clips);
  require_clip_option(options.width > 0 && options.height > 0, "width and height must be set",
                      making_clips);
  require_clip_option(options.layout <= clip_layout::cthw, "layout is no value of clip_layout",
                      making_clips);
  require_clip_option(options.start_field.empty() || options.sampling.clips == 1,
                      "several clips cannot start at one time", making_clips);
  check_picture_options(image_, making_clips);
  check_decode_options(options.decoding, making_clips);
}

bool decode_clip::is_random() const noexcept {
  const auto position = options_.sampling.position;
  const bool starts_anywhere =
      !options_.sampling.start && options_.start_field.empty() &&
      (position == clip_position::random || position == clip_position::random_key);
  return starts_anywhere || options_.fit == image_fit::random_crop;
}

video_options decode_clip::opening() const {
  return {.stream = options_.stream,
          .demuxing = {.damage = options_.decoding.damage},
          .max_pixels = options_.decoding.max_pixels,
          .index_directory = options_.index_directory};
}

// Reads a time from a field of a sample.
static rational start_in_field(const sample& in, std::string_view name) {
  constexpr double most = 0x1p33;
  const double start = in.field(name).number();
  if (start >= -most && start <= most) return rational::nearest(start);
  throw error(errc::invalid_data, "decode " + in.name(),
              fmt::format("the field {} is not a time of at most 2^33 seconds", name));
}

// `in`: null if there is none.
std::vector<std::int64_t> decode_clip::numbers_for(const packet_index& of, const sample* in,
                                                   random& draw) const {
  auto sampling = options_.sampling;
  if (in != nullptr && !options_.start_field.empty())
    sampling.start = start_in_field(*in, options_.start_field);
  return sample_clip(of, sampling, draw);
}

tensor_spec decode_clip::spec_of(std::span<const std::int64_t> numbers) const {
  return clip_spec(options_, static_cast<std::int64_t>(numbers.size()) / options_.sampling.clips);
}

void decode_clip::operator()(const sample& in, const tensor& slot, random draw) const {
  const auto doing = "decode " + in.name();
  require_clip_slot(options_, spec_, slot, doing);
  const video opened(encoded_bytes(in, options_.field, doing), in.name(), opening());
  const auto numbers = numbers_for(opened.index(), &in, draw);
  write_clip(opened, numbers, slot, draw, {});
}

tensor decode_clip::operator()(const sample& in, random draw) const {
  const auto doing = "decode " + in.name();
  const video opened(encoded_bytes(in, options_.field, doing), in.name(), opening());
  const auto numbers = numbers_for(opened.index(), &in, draw);
  const auto spec = spec_of(numbers);
  const tensor clip(spec, allocate_now(spec.bytes()));
  write_clip(opened, numbers, clip, draw, {});
  return clip;
}

void decode_clip::write_clip(const video& from, std::span<const std::int64_t> numbers,
                             const tensor& slot, random draw, const std::stop_token& stop) const {
  const auto slots = slots_of(numbers);
  const auto length = static_cast<std::int64_t>(numbers.size()) / options_.sampling.clips;
  selection_statistics counted;
  from.for_each_frame(
      numbers,
      [&](std::int64_t number, const frame& decoded) {
        const auto [first, last] = std::ranges::equal_range(slots, number, {}, &clip_slot::frame);
        for (const auto& each : std::ranges::subrange(first, last)) {
          const auto& clip = options_.sampling.clips == 1 ? slot : slot[each.slot / length];
          write_frame(decoded, image_, frame_slot(clip, options_.layout, each.slot % length), draw);
        }
      },
      options_.decoding, &counted, stop);
  damaged_->fetch_add(from.damaged() + counted.damaged, std::memory_order_relaxed);
}

// Whether the file starts with the box of MP4 files, ftyp (ISO/IEC 14496-12, 4.3).
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

// The coroutine owns the copy of the decoder.
task<tensor> decode_clip::read_clip(decode_clip decode, std::shared_ptr<const byte_reader> from,
                                    random draw) {
  if (!decode.options_.start_field.empty())
    throw error(errc::invalid_argument, "read a clip", "a reader has no field with its start");
  auto opened = co_await video::open(std::move(from), decode.opening());
  const auto numbers = decode.numbers_for(opened.index(), nullptr, draw);
  opened = co_await opened.fetch(numbers);
  const auto spec = decode.spec_of(numbers);
  const auto memory = co_await allocate(spec.bytes());
  const tensor clip(spec, memory);
  auto& current = co_await this_context_reference();
  co_await continue_on_pool();
  decode.write_clip(opened, numbers, clip, draw, current.stop);
  co_return clip;
}

task<tensor> decode_clip::read(std::shared_ptr<const byte_reader> from, random draw) const {
  return read_clip(*this, std::move(from), draw);
}

}  // namespace lade::media
