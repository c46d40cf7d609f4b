// Reads any bytes as JSON, and as the object of a line.

#include "../../io/formats/json_fields.hpp"
#include "../support/json.hpp"

#include <lade/error.hpp>
#include <lade/support/json_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

static bool is_read(std::string_view text) try {
  lade::support::json_reader json(text, "text");
  json.skip();
  json.end();
  return true;
} catch (const lade::error& refused) {
  if (refused.code() != lade::errc::invalid_data) std::abort();
  return false;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool is_json = is_read(text);
  if (is_json && !lade::test::is_json(text)) std::abort();
  try {
    std::size_t bytes = 0;
    for (auto& field : lade::io::parse_json_fields(text, "text", 1, 100))
      bytes += field.name().size();
    if (!is_json || bytes > size) std::abort();
  } catch (const lade::error&) {}
  return 0;
}
