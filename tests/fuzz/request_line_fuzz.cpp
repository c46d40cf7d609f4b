// Reads any bytes as the first line of an HTTP request.

#include <lade/metrics_server.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto line = lade::detail::parse_request_line(text);
  if (!line) return 0;
  auto again = std::string(line->method) + " " + std::string(line->path);
  if (!text.starts_with(again) || again.find('\n') != again.npos) std::abort();
  if (line->path.find_first_of(" ?") != line->path.npos) std::abort();
  return 0;
}
