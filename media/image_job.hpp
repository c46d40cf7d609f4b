// The decoding of one image: from its file to its tensor.

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

// The spec of the tensor of an image of this size.
tensor_spec spec_of(const image_options& options, int width, int height);

// Decodes one image after another, with one lane of the thread's decoders, in two steps: begin()
// reads the header and obtains the slot, finish() decodes the pixels. Other jobs may begin and
// finish in between. One thread at a time.
class image_job {
 public:
  // Returns the tensor of an image, once its size is known. `doing`: the operation, for errors.
  using slot_of = std::function<tensor(const tensor_spec& spec, std::string_view doing)>;

  image_job(used_decoders& worker, std::size_t lane, const image_options& options,
            image_counts& counts) noexcept
      : worker_(worker), lane_(worker->lanes[lane]), options_(options), counts_(counts) {}
  image_job(const image_job&) = delete;
  ~image_job() { close(); }

  // Reads the header. `in` must live until finish() returns. The crop is `chosen`, else that of the
  // option crop_field, else drawn from `draw`. Throws the errors of decode_image; then finish()
  // must not be called.
  void begin(const sample& in, random draw, slot_of slot, const chosen_crop* chosen = nullptr);

  // Whether nothing is left that could be decoded together with another image.
  bool is_complete() const noexcept { return !is_quick() || lane_.jpeg.is_complete(); }

  // Whether the image can be decoded together with another one now. A large image can for a few
  // rows only.
  bool can_interleave() const noexcept { return is_quick() && lane_.jpeg.can_interleave(); }

  // Decodes the image and returns its tensor. lade's own decoder also decodes other images that
  // have started, which `partner` returns; see quick_jpeg::interleave_with. Throws the errors of
  // decode_image.
  using partner_source = std::function<image_job*()>;
  tensor finish(const partner_source& partner = {});

 private:
  // The source of the pixels:
  //   by_reader      an image_reader of `decoders`
  //   quick_colours  the lane's quick_jpeg: red, green and blue
  //   quick_luma     the same: luma alone
  //   quick_planes   the same: planes, which are resized before they are converted
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

  // The current image.
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
