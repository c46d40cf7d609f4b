#include "jpeg_arrays.hpp"

#include <lade/buffer_pool.hpp>

#include <cstring>

#include <jerror.h>

namespace lade::media {

void jpeg_arrays::serve(jpeg_decompress_struct& jpeg) noexcept {
  clear();
  jpeg.client_data = this;
  jpeg.mem->request_virt_barray = request;
  jpeg.mem->access_virt_barray = access;
}

void jpeg_arrays::clear() noexcept {
  while (count_ > 0) components_[--count_] = {};
}

// Returns null if memory is exhausted: exceptions must not pass through libjpeg's frames.
jpeg_arrays::blocks* jpeg_arrays::add(JDIMENSION width, JDIMENSION height, bool zeroed) noexcept {
  if (count_ == components_.size()) return nullptr;
  auto& added = components_[count_];
  const auto bytes = std::size_t{width} * height * sizeof(JBLOCK);
  try {
    added.memory = allocate_now(bytes + height * sizeof(JBLOCKROW));
  } catch (...) {
    return nullptr;
  }
  ++count_;
  if (zeroed) std::memset(added.memory.data(), 0, bytes);
  auto* first = reinterpret_cast<JBLOCKROW>(added.memory.data());
  added.rows = reinterpret_cast<JBLOCKARRAY>(added.memory.data() + bytes);
  added.height = height;
  for (std::size_t y = 0; y < height; ++y) added.rows[y] = first + y * width;
  return &added;
}

jvirt_barray_ptr jpeg_arrays::request(j_common_ptr jpeg, int /*pool*/, boolean zeroed,
                                      JDIMENSION width, JDIMENSION height,
                                      JDIMENSION /*most_rows*/) {
  auto* added = static_cast<jpeg_arrays*>(jpeg->client_data)->add(width, height, zeroed != FALSE);
  if (added == nullptr) ERREXIT1(jpeg, JERR_OUT_OF_MEMORY, 0);
  return reinterpret_cast<jvirt_barray_ptr>(added);
}

JBLOCKARRAY jpeg_arrays::access(j_common_ptr jpeg, jvirt_barray_ptr array, JDIMENSION first,
                                JDIMENSION count, boolean /*writable*/) {
  const auto& from = *reinterpret_cast<blocks*>(array);
  if (first > from.height || count > from.height - first) ERREXIT(jpeg, JERR_BAD_VIRTUAL_ACCESS);
  return from.rows + first;
}

}  // namespace lade::media
