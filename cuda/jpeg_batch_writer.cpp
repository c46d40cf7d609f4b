#include "jpeg_batch_writer.hpp"

#include "jpeg_pixels.hpp"

#include <lade/error.hpp>

#include <utility>

namespace lade::cuda {

static tensor_spec spec_of(const image_batch& batch, std::size_t images) {
  const auto count = static_cast<std::int64_t>(images);
  if (batch.layout == pixel_layout::chw)
    return {batch.type, {count, batch.channels, batch.height, batch.width}};
  return {batch.type, {count, batch.height, batch.width, batch.channels}};
}

jpeg_batch_writer::jpeg_batch_writer(const image_batch& to, jpeg_decoder::view_of views)
    : to_(to), views_(std::move(views)), image_bytes_(spec_of(to, 1).bytes()) {}

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

image_batch jpeg_batch_writer::part(std::size_t first) const {
  auto part = to_;
  part.data = images_.bytes() + first * image_bytes_;
  return part;
}

void jpeg_batch_writer::write(std::span<jpeg_item> items, device_resource& memory,
                              const stream& on) {
  const auto spec = spec_of(to_, items.size());
  memory_.emplace(memory, spec.bytes(), on);
  images_ = tensor(spec, memory_->slice(0, spec.bytes()));
  sources_.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!items[i].failure) sources_[i] = source_of(items[i], i);
  current_device current(on.on());
  for (std::size_t first = 0; first < items.size();) {
    std::size_t end = first;
    while (end < items.size() && !items[end].failure) ++end;
    write_run(items, first, end, on);
    first = end + 1;
  }
}

// Where one image of several is refused, nothing is enqueued. So each is then written alone.
void jpeg_batch_writer::write_run(std::span<jpeg_item> items, std::size_t first, std::size_t end,
                                  const stream& on) {
  if (first == end) return;
  try {
    write_images(std::span(sources_).subspan(first, end - first), part(first), on.handle());
  } catch (const error& refusal) {
    if (refusal.code().category() != lade::error_category()) throw;
    for (auto i = first; i < end; ++i) write_one(items[i], i, on);
  }
}

void jpeg_batch_writer::write_one(jpeg_item& item, std::size_t index, const stream& on) {
  try {
    write_images({&sources_[index], 1}, part(index), on.handle());
  } catch (const error& refusal) {
    if (refusal.code().category() != lade::error_category()) throw;
    item.failure = named_failure(refusal, jpeg_name(*item.source, index));
  }
}

resized_jpegs jpeg_batch_writer::take(std::span<jpeg_item> items) {
  std::vector<std::exception_ptr> failures;
  for (auto& item : items) failures.push_back(item.failure);
  return {images_, *memory_, std::move(failures)};
}

}  // namespace lade::cuda
