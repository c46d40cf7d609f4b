#include "new_file.hpp"

#include <lade/error.hpp>
#include <lade/io/formats/manifest.hpp>
#include <lade/support/json.hpp>
#include <lade/support/utf8.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace lade::io {

[[noreturn]] static void refuse_to_save(const sample& refused, const std::string& reason) {
  throw error(errc::invalid_argument, fmt::format("save {} to a manifest", refused.name()), reason);
}

static bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    auto length = support::utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

static std::string manifest_text(const sample& saved, std::string_view text) {
  if (!is_utf8(text)) refuse_to_save(saved, "it has text that is not UTF-8");
  return support::json_of(text);
}

// Formats a number so that it is read back as the same number, and not as an integer.
static std::string manifest_number(const sample& saved, double number) {
  if (!std::isfinite(number)) refuse_to_save(saved, "it has a number that is not finite");
  std::array<char, 40> digits;
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  std::string text(digits.data(), end);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

static std::string manifest_value(const sample& saved, const field& value) {
  switch (value.type()) {
    case field::kind::text: return manifest_text(saved, value.text());
    case field::kind::integer: return std::to_string(value.integer());
    case field::kind::number: return manifest_number(saved, value.number());
    default:
      refuse_to_save(saved, fmt::format("its field {} has {}, which a manifest cannot hold",
                                        value.name(), name(value.type())));
  }
}

static std::string manifest_line(const sample& saved) {
  if (saved.has_data()) refuse_to_save(saved, "it has data, which a manifest cannot hold");
  constexpr std::array<std::string_view, 4> reserved{"path", "url", "key", "label"};
  auto line = "{\"path\":" + manifest_text(saved, saved.key());
  if (saved.label() != sample::no_label) line += fmt::format(",\"label\":{}", saved.label());
  for (auto& value : saved.fields()) {
    if (std::find(reserved.begin(), reserved.end(), value.name()) != reserved.end())
      refuse_to_save(
          saved, fmt::format("its field {} has a name that means something else", value.name()));
    line += ',' + manifest_text(saved, value.name()) + ':' + manifest_value(saved, value);
  }
  return line + "}\n";
}

void save_manifest(const std::string& path, std::span<const sample> samples) {
  if (!path.ends_with(".jsonl") && !path.ends_with(".ndjson"))
    throw error(errc::invalid_argument, "write " + without_secrets(path),
                "a manifest of JSON lines must end with .jsonl or .ndjson");
  detail::new_file file(path);
  std::string text;
  for (auto& each : samples) {
    text += manifest_line(each);
    if (text.size() < 1 << 20) continue;
    file.write(std::as_bytes(std::span(text)));
    text.clear();
  }
  file.write(std::as_bytes(std::span(text)));
  file.publish();
}

}  // namespace lade::io
