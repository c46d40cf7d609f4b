#include "convert_queue.hpp"
#include "kernel_launches.hpp"

namespace lade::cuda {

convert_queue::convert_queue(const image_batch& to, int channels, const checked_item& item,
                             CUstream_st* on)
    : item_(item), stream_(on) {
  batch_.channels = channels;
  batch_.target.data = to.data;
  batch_.target.width = to.width;
  batch_.target.height = to.height;
  batch_.target.channels = static_cast<std::uint8_t>(to.channels);
  batch_.target.code = code_of(to.type, item, "to.type");
  batch_.target.planar = to.layout == pixel_layout::chw;
  batch_.target.bgr = to.bgr;
  batch_.target.scaling = scaling_of(to);
}

void convert_queue::add(const convert_source& source) {
  rows_join_ =
      rows_join_ && !source.mirrored && source.pitch == batch_.target.width * batch_.channels;
  batch_.sources[batch_.count++] = source;
  if (batch_.count == convert_batch::most_sources) flush();
}

// The batch, with images of one long row if all rows are contiguous.
convert_batch convert_queue::joined() const noexcept {
  auto result = batch_;
  if (!rows_join_) return result;
  result.target.width *= result.target.height;
  result.target.height = 1;
  return result;
}

static std::int64_t group_pixels_of(element_code code) {
  return code == element_code::u8 ? 16 : code == element_code::f32 ? 4 : 8;
}

// The number of groups in a row as a power of two, rounded up, at most the threads of a block.
static int lane_bits_for(std::int64_t groups) {
  int bits = 0;
  while ((1 << bits) < convert_threads && (1 << bits) < groups) ++bits;
  return bits;
}

void convert_queue::flush() {
  if (batch_.count == 0) return;
  auto batch = joined();
  const auto pixels = group_pixels_of(batch.target.code);
  batch.grouped = address_of(batch.target.data) % 16 == 0 && batch.target.width % pixels == 0;
  batch.lane_bits = lane_bits_for(batch.target.width / (batch.grouped ? pixels : 1));
  check_launch(current_launches().convert(batch, stream_), item_);
  batch_.count = 0;
  rows_join_ = true;
}

}  // namespace lade::cuda
