#include "resample_queue.hpp"
#include "kernel_launches.hpp"

namespace lade::cuda {

// With this shared memory per block, six blocks of 256 threads fit into 100 KiB.
static constexpr unsigned wanted_shared_bytes = 16 * 1024;

resample_queue::resample_queue(const image_batch& to, int sample_bytes, const checked_item& item,
                               CUstream_st* on)
    : item_(item), stream_(on) {
  batch_.sample_bytes = sample_bytes;
  batch_.target.data = to.data;
  batch_.target.width = to.width;
  batch_.target.height = to.height;
  batch_.target.channels = static_cast<std::uint8_t>(to.channels);
  batch_.target.code = code_of(to.type, item, "to.type");
  batch_.target.planar = to.layout == pixel_layout::chw;
  batch_.target.bgr = to.bgr;
  batch_.target.scaling = scaling_of(to);
}

// Pads the weights of an output to an odd number of words, so that threads that read weights of
// neighbouring outputs use different banks.
static int padded_taps(int taps) { return (taps + 1) / 4 * 4 + 2; }

static void widen(resample_layout& layout, const resample_source& from, const resample_target& to) {
  for (int p = 0; p <= from.chroma_planes; ++p) {
    const bool chroma = p > 0;
    const int channels = view_of(from, p).channels;
    const auto columns = column_filter(from, to, chroma);
    const int taps = larger(most_taps(columns), most_taps(row_filter(from, to, chroma)));
    const int row = most_samples(columns, resample_tile::width) * channels + 4;
    layout.taps = larger(layout.taps, padded_taps(taps));
    layout.row = larger(layout.row, row);
    if (chroma) layout.filters = 2;
  }
}

resample_layout layout_for(const resample_batch& batch) noexcept {
  resample_layout layout;
  for (int i = 0; i < batch.count; ++i) widen(layout, batch.sources[i], batch.target);
  layout.rows = resample_tile::height;
  while (layout.rows > 1 && shared_bytes(layout) > wanted_shared_bytes) layout.rows /= 2;
  return layout;
}

void resample_queue::add(const resample_source& source) {
  batch_.sources[batch_.count] = source;
  ++batch_.count;
  if (batch_.count == resample_batch::most_sources) flush();
}

void resample_queue::flush() {
  if (batch_.count == 0) return;
  batch_.layout = layout_for(batch_);
  check_launch(current_launches().resample(batch_, stream_), item_);
  batch_.count = 0;
}

}  // namespace lade::cuda
