// Writes decoded images as a batch of images of one size.

#pragma once

#include "jpeg_session.hpp"

#include <lade/cuda/image_batch.hpp>
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/cuda/write_images.hpp>
#include <lade/error.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace lade::cuda {

// Returns `to` if its kind of batch is valid, whatever its memory. Throws error.
const image_batch& checked_kind(const image_batch& to);

// The writer of one batch. It must live until the stream has passed the work of write().
class jpeg_batch_writer {
 public:
  // Throws error for an invalid kind of batch.
  jpeg_batch_writer(const image_batch& to, jpeg_decoder::view_of views);

  // Enqueues the kernels that write the views of all images that have not failed, contiguously. An
  // image that the kernels refuse, or without a view, fails. Throws error if the batch has failed.
  void write(std::span<jpeg_item> items, device_resource& memory, const stream& on);

  // Returns the written images and the failures of the items.
  resized_jpegs take(std::span<jpeg_item> items);

 private:
  image_source source_of(const jpeg_item& item, std::size_t index) const;
  void add(jpeg_item& item, std::size_t index);
  std::optional<error> refusal_of(std::span<const image_source> images, const stream& on) const;
  void write_each(std::span<jpeg_item> items, const stream& on);

  image_batch to_;
  jpeg_decoder::view_of views_;
  std::size_t image_bytes_;
  std::vector<image_source> sources_;
  std::vector<std::size_t> indices_;  // the sources' items
  std::optional<device_block> memory_;
  std::size_t written_ = 0;  // images
};

}  // namespace lade::cuda
