// Reads any bytes as the size of a .bin, in 2 bytes, and its index.

#include "../../io/formats/megatron_index.hpp"

#include <lade/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bin_bytes = std::uint64_t{data[1]} << 8 | data[0];
  try {
    const lade::io::megatron_index index(std::as_bytes(std::span(data + 2, size - 2)), "index",
                                         bin_bytes);
    const auto tokens = bin_bytes / lade::element_bytes(index.type());
    std::uint64_t before = 0;
    for (std::uint64_t i = 0; i <= index.documents(); ++i) {
      if (index.document_begin(i) < before) std::abort();
      before = index.document_begin(i);
    }
    if (before != tokens) std::abort();
  } catch (const lade::error&) {}
  return 0;
}
