#include "jpeg_batch_writer.hpp"

#include "jpeg_pixels.hpp"
#include "kernel_arguments.hpp"

#include <lade/error.hpp>

#include <utility>

namespace lade::cuda {

static tensor_spec spec_of(const image_batch& batch, std::size_t images) {
  const auto count = static_cast<std::int64_t>(images);
  if (batch.layout == pixel_layout::chw)
    return {batch.type, {count, batch.channels, batch.height, batch.width}};
  return {batch.type, {count, batch.height, batch.width, batch.channels}};
}

// Checks with an arbitrary address: the memory is not allocated yet.
const image_batch& checked_kind(const image_batch& to) {
  alignas(16) std::byte anywhere[16];
  auto kind = to;
  kind.data = anywhere;
  check_batch(kind, {"decode JPEG images to a batch"});
  return to;
}

jpeg_batch_writer::jpeg_batch_writer(const image_batch& to, jpeg_decoder::view_of views)
    : to_(checked_kind(to)), views_(std::move(views)), image_bytes_(spec_of(to, 1).bytes()) {
  to_.images = -1;
  to_.gpu = -1;
}

image_source jpeg_batch_writer::source_of(const jpeg_item& item, std::size_t index) const {
  image_source source;
  source.data = item.image.bytes();
  source.height = static_cast<int>(item.image.shape()[0]);
  source.width = static_cast<int>(item.image.shape()[1]);
  if (!views_) return source;
  const auto view = views_(index, source.width, source.height);
  source.crop = view.crop;
  source.flip = view.flip;
  return source;
}

void jpeg_batch_writer::add(jpeg_item& item, std::size_t index) {
  if (item.failure) return;
  try {
    sources_.push_back(source_of(item, index));
    indices_.push_back(index);
  } catch (const std::exception& failure) {
    if (is_of_batch(failure)) throw;
    item.failure = named_failure(failure, jpeg_name(*item.source, index));
  }
}

void jpeg_batch_writer::write(std::span<jpeg_item> items, device_resource& memory,
                              const stream& on) {
  for (std::size_t i = 0; i < items.size(); ++i) add(items[i], i);
  memory_.emplace(memory, items.size() * image_bytes_, on);
  if (sources_.empty()) return;
  current_device current(on.on());
  if (refusal_of(sources_, on))
    write_each(items, on);
  else
    written_ = sources_.size();
}

// Enqueues images, or returns the error if one of them is refused; then none is enqueued.
std::optional<error> jpeg_batch_writer::refusal_of(std::span<const image_source> images,
                                                   const stream& on) const {
  auto next = to_;
  next.data = memory_->bytes().data() + written_ * image_bytes_;
  try {
    write_images(images, next, on.handle());
    return std::nullopt;
  } catch (const error& refusal) {
    if (refusal.code().category() != lade::error_category()) throw;
    return refusal;
  }
}

void jpeg_batch_writer::write_each(std::span<jpeg_item> items, const stream& on) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    auto& item = items[indices_[i]];
    if (const auto refusal = refusal_of({&sources_[i], 1}, on))
      item.failure = named_failure(*refusal, jpeg_name(*item.source, indices_[i]));
    else
      ++written_;
  }
}

resized_jpegs jpeg_batch_writer::take(std::span<jpeg_item> items) {
  std::vector<std::exception_ptr> failures;
  for (auto& item : items) failures.push_back(item.failure);
  const auto spec = spec_of(to_, written_);
  return {tensor(spec, memory_->slice(0, spec.bytes())), *memory_, std::move(failures)};
}

}  // namespace lade::cuda
