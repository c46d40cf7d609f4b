#include <lade/cuda/copy_bytes.hpp>
#include <lade/cuda/stream.hpp>

#include "copy_grid.hpp"
#include "kernel_arguments.hpp"
#include "kernel_launches.hpp"

namespace lade::cuda {

void copy_bytes(const void* from, void* to, std::size_t bytes, CUstream_st* on) {
  const checked_item item{"copy bytes on the device"};
  check_memory(from, 1, item, "from");
  check_memory(to, 1, item, "to");
  if (bytes == 0 || bytes > (std::size_t{1} << 38)) item.refuse("bytes must be 1 to 2^38");
  byte_copy copy;
  copy.from = static_cast<const unsigned char*>(from);
  copy.to = static_cast<unsigned char*>(to);
  copy.bytes = static_cast<std::int64_t>(bytes);
  check_launch(current_launches().copy(copy, on), item);
}

void copy_bytes(const void* from, void* to, std::size_t bytes, const stream& on) {
  const current_device scope(on.on());
  copy_bytes(from, to, bytes, on.handle());
}

}  // namespace lade::cuda
