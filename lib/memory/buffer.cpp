#include "block_store.hpp"

#include <lade/buffer.hpp>
#include <lade/memory_resource.hpp>

#include <new>
#include <stdexcept>
#include <string>

namespace lade {

buffer::buffer(std::size_t bytes) {
  auto* data =
      static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment), std::nothrow));
  if (!data) detail::raise_no_memory(bytes);
  owner_ = std::shared_ptr<const void>(
      data, [](void* memory) { ::operator delete(memory, std::align_val_t(alignment)); });
  bytes_ = {data, bytes};
}

buffer::buffer(std::size_t bytes, memory_resource& from) : where_(from.where()) {
  auto* data = detail::allocate_from(from, bytes, alignment);
  auto deallocate = [bytes, resource = share_of(from)](const void* memory) {
    resource->deallocate(const_cast<void*>(memory), bytes, alignment);
  };
  owner_ = std::shared_ptr<const void>(data, std::move(deallocate));
  bytes_ = {data, bytes};
}

buffer buffer::slice(std::size_t offset, std::size_t bytes) const {
  if (offset > size() || bytes > size() - offset)
    throw std::out_of_range("slice of " + std::to_string(bytes) + " bytes at " +
                            std::to_string(offset) + " of a buffer of " + std::to_string(size()));
  return {owner_, bytes_.subspan(offset, bytes), where_};
}

}  // namespace lade
