// Reads any bytes as the index of a dataset in MDS, and as a sample: its encodings line by line, an
// empty line, and its bytes.

#include "../../io/formats/mds_index.hpp"
#include "../../io/formats/mds_sample.hpp"

#include <lade/buffer.hpp>
#include <lade/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

static void read_index(std::string_view text) try {
  std::uint64_t samples = 0;
  for (auto& shard : lade::io::parse_mds_index(text, "index")) {
    samples += shard.samples;
    if (shard.end != samples || shard.samples > shard.bytes / 4) std::abort();
  }
} catch (const lade::error&) {}

static void read_sample(std::string_view text) try {
  std::vector<lade::io::mds_column> columns;
  for (;;) {
    const auto encoding = text.substr(0, text.find('\n'));
    if (encoding.size() == text.size()) return;
    text.remove_prefix(encoding.size() + 1);
    if (encoding.empty()) break;
    columns.push_back(
        lade::io::parse_mds_column("column " + std::to_string(columns.size()), encoding));
  }
  lade::buffer bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  const auto values = lade::io::split_mds_sample(bytes.bytes(), columns, "sample");
  const auto copied = lade::io::unaligned_bytes(values);
  if (copied > text.size() + 8 * columns.size()) std::abort();
  lade::io::mds_fields(values, bytes, lade::buffer(copied), "sample");
} catch (const lade::error&) {}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_index(text);
  read_sample(text);
  return 0;
}
