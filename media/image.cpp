#include <lade/batch.hpp>
#include <lade/buffer_pool.hpp>
#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/image.hpp>
#include <lade/media/picture.hpp>
#include <lade/media/slot.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "image_job.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace lade::media {

// Throws error naming the operation if an option is invalid.
class option_check {
 public:
  explicit option_check(std::string_view doing) noexcept : doing_(doing) {}
  void operator()(bool condition, std::string_view reason) const {
    if (!condition) throw error(errc::invalid_argument, doing_, reason);
  }

 private:
  std::string_view doing_;
};

static bool between(double low, double value, double high) { return low <= value && value <= high; }

static void check_enums(const image_options& options, const option_check& require) {
  require(options.fit <= image_fit::cover, "fit is no value of image_fit");
  require(options.colour <= image_colour::rgba, "colour is no value of image_colour");
  require(options.layout <= image_layout::chw, "layout is no value of image_layout");
}

static void check_fit(const image_options& options, const option_check& require) {
  constexpr int most = 1 << 15;
  const bool own_size = options.width == 0 && options.height == 0;
  require(own_size || (between(1, options.width, most) && between(1, options.height, most)),
          "width and height must both be set, up to 32768, or neither");
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

decode_image::decode_image(const image_options& options)
    : fields_(std::make_shared<const std::string>(
          std::string(options.field).append(options.crop_field))),
      options_(options),
      spec_(spec_of(options, options.width, options.height)),
      counts_(std::make_shared<image_counts>()) {
  options_.field = std::string_view(*fields_).substr(0, options.field.size());
  options_.crop_field = std::string_view(*fields_).substr(options.field.size());
  check_options(options);
  options_.shorter_side = resolved_shorter_side(options);
}

static tensor given_slot(const tensor& slot, const tensor_spec& spec, std::string_view doing) {
  require_slot_of(spec, slot, doing);
  return slot;
}

static tensor new_slot(const tensor_spec& spec, std::string_view) {
  return {spec, allocate_now(spec.bytes())};
}

// Decodes an image with `crop`; if that is null, with a crop drawn from `draw`.
static tensor decode_one(const sample& in, random draw, const chosen_crop* crop,
                         const image_options& options, image_counts& counts,
                         image_job::slot_of slot) {
  used_decoders worker;
  image_job job(worker, 0, options, counts);
  job.begin(in, draw, std::move(slot), crop);
  return job.finish();
}

void decode_image::operator()(const sample& in, const tensor& slot, random draw) const {
  decode_one(in, draw, nullptr, options_, *counts_,
             [&](const tensor_spec& spec, std::string_view doing) {
               return given_slot(slot, spec, doing);
             });
}

tensor decode_image::operator()(const sample& in, random draw) const {
  return decode_one(in, draw, nullptr, options_, *counts_, new_slot);
}

void decode_image::operator()(const sample& in, const tensor& slot, const chosen_crop& crop) const {
  decode_one(in, {}, &crop, options_, *counts_,
             [&](const tensor_spec& spec, std::string_view doing) {
               return given_slot(slot, spec, doing);
             });
}

tensor decode_image::operator()(const sample& in, const chosen_crop& crop) const {
  return decode_one(in, {}, &crop, options_, *counts_, new_slot);
}

chosen_crop decode_image::crop_of(const sample& in, random draw) const {
  const auto size = size_of_image(in, options_);
  return choose_crop(size.width, size.height, options_, draw);
}

chosen_crop decode_image::crop_of(const sample& in, random draw, const image_size& result) const {
  auto options = options_;
  options.width = result.width;
  options.height = result.height;
  options.shorter_side = 0;
  const auto size = size_of_image(in, options_);
  return choose_crop(size.width, size.height, options, draw);
}

static image_job::slot_of slot_for(const taken_sample& taken) {
  return [&taken](const tensor_spec& spec, std::string_view doing) {
    return given_slot(taken.slot(), spec, doing);
  };
}
static image_job::slot_of slot_for(const taken_item<sample, tensor>&) { return new_slot; }

static void complete(taken_sample& taken, tensor&&) { taken.done(); }
static void complete(taken_item<sample, tensor>& taken, tensor&& made) {
  taken.give(std::move(made));
}

// A job, and the item that it decodes, if it has one.
template <class Taken>
struct taken_job {
  image_job job;
  std::optional<Taken> taken = {};

  // Takes items until one of their images has started. Failures of other items are reported.
  template <class Waiting>
  void begin(Waiting& waiting) {
    while ((taken = waiting.next())) {
      try {
        return job.begin(**taken, taken->draw(), slot_for(*taken));
      } catch (...) {
        taken->fail(std::current_exception());
      }
    }
  }

  void finish(const image_job::partner_source& partner) {
    try {
      auto made = job.finish(partner);
      complete(*taken, std::move(made));
    } catch (...) {
      taken->fail(std::current_exception());
    }
    taken.reset();
  }
};

// Decodes an image interleaved with the next one; once that is decoded, with the one after it.
template <class Waiting>
static void decode_waiting(Waiting& waiting, const image_options& options, image_counts& counts) {
  using taken = typename decltype(waiting.next())::value_type;
  used_decoders worker;
  std::array<taken_job<taken>, 3> jobs{{{.job = {worker, 0, options, counts}},
                                        {.job = {worker, 1, options, counts}},
                                        {.job = {worker, 2, options, counts}}}};
  std::size_t first = 0;
  std::exception_ptr failure;  // from taking an item; items in flight are not affected
  const auto partner = [&]() -> image_job* {
    try {
      for (std::size_t i = 1; i < jobs.size() && !failure; ++i) {
        auto& other = jobs[(first + i) % jobs.size()];
        if (!other.taken) other.begin(waiting);
        if (!other.taken) return nullptr;
        if (other.job.can_interleave()) return &other.job;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    return nullptr;
  };
  for (;; first = (first + 1) % jobs.size()) {
    auto& now = jobs[first];
    if (!now.taken && !failure) now.begin(waiting);
    if (!now.taken) break;
    now.finish(std::ref(partner));
  }
  if (failure) std::rethrow_exception(failure);
}

void decode_image::operator()(waiting_samples& waiting) const {
  decode_waiting(waiting, options_, *counts_);
}

void decode_image::operator()(waiting_items<sample, tensor>& waiting) const {
  decode_waiting(waiting, options_, *counts_);
}

// The coroutine owns a copy of the decoder.
static task<tensor> read_image(decode_image decode, std::shared_ptr<const byte_reader> from,
                               random draw) {
  auto content = co_await from->read_at(0, static_cast<std::size_t>(from->size()));
  auto& current = co_await this_context_reference();
  co_await continue_on_pool();
  if (current.stop.stop_requested()) throw error(errc::stopped, "decode " + from->name());
  co_return decode(sample(from->name()).with_data(std::move(content)), draw);
}

task<tensor> decode_image::read(std::shared_ptr<const byte_reader> from, random draw) const {
  return read_image(*this, std::move(from), draw);
}

}  // namespace lade::media
