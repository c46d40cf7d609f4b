// An image on its way from its file to its tensor.

#pragma once

#include "crop.hpp"
#include "decoders.hpp"

#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lade::media {

// What an image of that size becomes.
tensor_spec spec_of(const image_options& options, int width, int height);

// One image after another, with one lane of the thread's decoders, in two steps: begin() reads the
// header and says where the pixels go, finish() decodes them. Images of other jobs may be begun and
// finished in between.
class image_job {
 public:
  // Where the tensor of an image is: known when its size is. `doing` is the beginning of errors.
  using slot_of = std::function<tensor(const tensor_spec& spec, std::string_view doing)>;

  image_job(used_decoders& worker, std::size_t lane, const image_options& options,
            image_counts& counts) noexcept
      : worker_(worker), lane_(worker->lanes[lane]), options_(options), counts_(counts) {}
  image_job(const image_job&) = delete;
  ~image_job() { close(); }

  // `in` outlives the image's job. The crop is `given`, or that of the options' crop_field, or else
  // chosen by `draw`. Throws what decode_image throws; then there is nothing to finish.
  void begin(const sample& in, random draw, slot_of slot, const chosen_crop* chosen = nullptr);

  // Whether nothing of the image is left that could be decoded together with another.
  bool is_complete() const noexcept { return !is_quick() || lane_.jpeg.is_complete(); }

  // Whether it can be decoded together with another now: of a large image, only a few rows until it
  // is its turn.
  bool can_interleave() const noexcept { return is_quick() && lane_.jpeg.can_interleave(); }

  // Decodes the image, and meanwhile those of other jobs, as far as all are quick: of those that
  // `partner` gives, which have begun; see quick_jpeg::interleave_with. Gives the tensor. Throws
  // what decode_image throws.
  using partner_source = std::function<image_job*()>;
  tensor finish(const partner_source& partner = {});

 private:
  // How the pixels come: from a reader of decoders, or by the lane's quick_jpeg as the colours of
  // the image, as its luma alone, or as planes that are resized before they are converted.
  enum class way : std::uint8_t { by_reader, quick_colours, quick_luma, quick_planes };

  bool is_quick() const noexcept { return way_ != way::by_reader; }

  class closer {
   public:
    explicit closer(image_job& job) noexcept : job_(job) {}
    closer(const closer&) = delete;
    ~closer() { job_.close(); }

   private:
    image_job& job_;
  };

  way begin_quickly();
  way quick_way(const image_crop& crop) const;
  void begin_quick_planes(const image_crop& crop);
  void begin_writing(const image_crop& crop);
  bool decode_quickly(const partner_source& partner);
  void decode_by_reader();
  void decode_pixels(image_reader& reader, const image_crop& crop);
  void decode_rows(image_reader& reader, const image_crop& crop);
  void decode_planes(const image_crop& crop);
  image_crop crop_of(int width, int height);
  void make_slot(const image_crop& crop);
  void close() noexcept;

  used_decoders& worker_;
  image_lane& lane_;
  const image_options& options_;
  image_counts& counts_;

  // Of the image.
  std::string doing_;
  image_file file_;
  random draw_;
  std::optional<chosen_crop> chosen_crop_;
  slot_of provide_slot_;
  image_reader* reader_ = nullptr;
  way way_ = way::by_reader;
  tensor slot_;
};

}  // namespace lade::media
