// Reads any bytes as the file of a cached block, with checksums that are made right.

#include "../../io/cache_block.hpp"

#include <lade/checksum.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

using namespace lade::detail;

static std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The checksum at the end, of a label that begins where its lengths say.
static void set_checksum(std::string& file) {
  auto number = [&](std::size_t from_end) {
    std::size_t value = 0;
    for (std::size_t i = 4; i-- > 0;)
      value = value << 8 | static_cast<std::uint8_t>(file[file.size() - from_end + i]);
    return value;
  };
  auto bytes = label_end_bytes + number(16) + number(12);
  if (bytes > file.size()) return;
  auto label = std::string_view(file).substr(file.size() - bytes, bytes - 4);
  auto crc = lade::crc32c(bytes_of(label)).value();
  for (std::size_t i = 0; i < 4; ++i) file[file.size() - 4 + i] = static_cast<char>(crc >> (8 * i));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (size >= label_end_bytes) set_checksum(file);
  auto label = decode_label(bytes_of(file), file.size());
  if (!label) return 0;
  (void)has_content_of(*label, bytes_of(file));
  if (label->content_bytes > file.size()) std::abort();
  auto again = file.substr(0, label->content_bytes) + encode_label(*label);
  if (again != file) std::abort();
  return 0;
}
