// Decoded images become a batch of images of one size.

#pragma once

#include "jpeg_session.hpp"

#include <lade/cuda/image_batch.hpp>
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/cuda/write_images.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace lade::cuda {

// Of one batch. It must live until the stream has passed what write() enqueues.
class jpeg_batch_writer {
 public:
  jpeg_batch_writer(const image_batch& to, jpeg_decoder::view_of views);

  // Enqueues the kernels that write the views of all images that have not failed. An image that
  // they refuse fails. Throws error if the batch has failed.
  void write(std::span<jpeg_item> items, device_resource& memory, const stream& on);

  // What has been written, and the failures of the items.
  resized_jpegs take(std::span<jpeg_item> items);

 private:
  image_source source_of(const jpeg_item& item, std::size_t index) const;
  image_batch part(std::size_t first) const;
  void write_run(std::span<jpeg_item> items, std::size_t first, std::size_t end, const stream& on);
  void write_one(jpeg_item& item, std::size_t index, const stream& on);

  image_batch to_;
  jpeg_decoder::view_of views_;
  std::size_t image_bytes_;
  std::vector<image_source> sources_;
  std::optional<device_block> memory_;
  tensor images_;
};

}  // namespace lade::cuda
