// Reads any bytes as a safetensors file.

#include <lade/error.hpp>
#include <lade/io/formats/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lade::buffer file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  std::size_t bytes = 0;
  try {
    for (const auto& each : lade::io::parse_safetensors(file, "fuzz")) {
      const auto& tensor = each.tensor();
      if (!tensor.contiguous()) std::abort();
      bytes += tensor.spec().bytes();
      if (tensor.spec().elements() > 0) std::memcpy(file.data(), tensor.bytes(), 1);
    }
    if (bytes > size) std::abort();
  } catch (const lade::error& refused) {
    const auto code = refused.code();
    if (code != lade::errc::invalid_data && code != lade::errc::unsupported) std::abort();
  }
  return 0;
}
