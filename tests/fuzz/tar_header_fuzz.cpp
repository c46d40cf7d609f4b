// Reads any bytes as headers and extensions, with checksums that are made right.

#include "../../io/formats/tar_header.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace lade::detail;

static void set_checksum(std::string& block) {
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (auto c : block) sum += static_cast<unsigned char>(c);
  char text[9];
  std::snprintf(text, sizeof text, "%06o", sum);
  block.replace(148, 6, text, 6);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  tar_parser parser;
  while (rest.size() >= tar_block_bytes) {
    std::string block(rest.substr(0, tar_block_bytes));
    rest.remove_prefix(tar_block_bytes);
    set_checksum(block);
    if (!has_tar_checksum(block)) std::abort();
    try {
      auto found = parser.add_header(block);
      if (found == tar_parser::found::extension) {
        auto bytes = std::min<std::uint64_t>(parser.data_bytes(), rest.size());
        parser.add_extension(rest.substr(0, bytes));
        rest.remove_prefix(bytes);
      } else if (found == tar_parser::found::member && parser.entry().name.empty()) {
        std::abort();
      }
    } catch (const tar_fault&) {
      parser.forget();
    }
  }
  (void)parse_pax_time(rest);
  (void)parse_tar_number(rest);
  return 0;
}
