// Reads any bytes as a pattern, a line feed, and a path to match.

#include <lade/error.hpp>
#include <lade/io/glob.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto end = std::min(text.find('\n'), size);
  auto path = text.substr(std::min(end + 1, size));
  try {
    lade::io::glob pattern(text.substr(0, end));
    lade::io::glob either_case(text.substr(0, end), true);
    (void)pattern.matches(path);
    (void)either_case.matches(path);
  } catch (const lade::error& refused) {
    if (refused.code() != lade::errc::invalid_argument) std::abort();
  }
  return 0;
}
