// Reads any bytes as a file of profiles. What is read is read the same again when it is written.

#include "../../io/http/profile_file.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace lade::io::http;

static std::string written(const profile_sections& sections) {
  std::string text;
  for (auto& [name, section] : sections) {
    text += "['" + name + "'] # a section\n";
    for (auto& [property, value] : section) text.append(property + " = " + value + "\r\n");
  }
  return text;
}

// Errors name the file and the line, and show nothing of it.
static void check_refusal(const lade::error& refused, std::string_view text) {
  constexpr std::array<std::string_view, 4> reasons{
      "a property outside of a section", "neither [section] nor name = value",
      "no end of a section's name", "a section without a name"};
  std::string_view what(refused.what());
  bool is_known = false;
  for (std::ptrdiff_t line = 1; line <= std::ranges::count(text, '\n') + 1 && !is_known; ++line)
    is_known = std::ranges::any_of(reasons, [&](auto why) {
      return what == "read file: line " + std::to_string(line) + ": " + std::string(why);
    });
  if (refused.code() != lade::errc::invalid_data || !is_known) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  profile_sections sections;
  try {
    sections = parse_profile_file(text, "file");
  } catch (const lade::error& refused) {
    check_refusal(refused, text);
    return 0;
  }
  for (auto& [name, section] : sections)
    for (auto& [property, value] : section)
      if (name.empty() || property.empty() || text.find(value) == text.npos) std::abort();
  if (parse_profile_file(written(sections), "again") != sections) std::abort();
  return 0;
}
