// Reads any bytes as the index of a tar archive: as they are, and between the mark of an index and
// its checksum, so that the numbers in them are reached.

#include <lade/error.hpp>
#include <lade/io/formats/tar_index.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

// An index has one form only.
static void read(const std::string& bytes) {
  try {
    if (lade::io::to_bytes(lade::io::tar_index_from_bytes(bytes)) != bytes) std::abort();
  } catch (const lade::error&) {}
}

// FNV-1a.
static std::uint64_t checksum_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (auto c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  read(bytes);
  auto sealed = "LADETAR1" + bytes;
  auto checksum = checksum_of(sealed);
  for (unsigned i = 0; i < 8; ++i) sealed += static_cast<char>(checksum >> 8 * i & 0xff);
  read(sealed);
  return 0;
}
