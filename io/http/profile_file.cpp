#include "profile_file.hpp"

#include "settings.hpp"

#include <lade/error.hpp>

#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

// Parses the lines of one file.
class profile_parser {
 public:
  explicit profile_parser(std::string_view name) noexcept : name_(name) {}

  void read(std::string_view line) {
    ++line_;
    auto text = trimmed(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') return;
    auto indentation = line.find(text.front());
    if (!property_.empty() && indentation > indentation_) return read_nested(text);
    if (text.front() == '[') return enter(text);
    auto [name, value] = split(text);
    if (!section_) refuse("a property outside of a section");
    property_ = name;
    indentation_ = indentation;
    (*section_)[property_] = without_comment(value);
  }

  profile_sections sections;

 private:
  static bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

  static std::string_view trimmed(std::string_view text) noexcept {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
  }

  // A comment after a value starts after a space.
  static std::string_view without_comment(std::string_view value) noexcept {
    for (std::size_t i = 1; i < value.size(); ++i)
      if ((value[i] == '#' || value[i] == ';') && is_space(value[i - 1]))
        return trimmed(value.substr(0, i));
    return value;
  }

  [[noreturn]] void refuse(std::string_view reason) const {
    throw error(errc::invalid_data, "read " + std::string(name_),
                fmt::format("line {}: {}", line_, reason));
  }

  std::pair<std::string, std::string_view> split(std::string_view text) const {
    auto equals = text.find('=');
    auto name = trimmed(text.substr(0, equals));
    if (equals == text.npos || name.empty()) refuse("neither [section] nor name = value");
    return {std::string(name), trimmed(text.substr(equals + 1))};
  }

  // Enters the section "[profile a]". A quoted name may have spaces.
  void enter(std::string_view text) {
    auto end = text.find(']');
    if (end == text.npos) refuse("no end of a section's name");
    std::string name;
    for (auto rest = trimmed(text.substr(1, end - 1)); !rest.empty(); rest.remove_prefix(1)) {
      if (rest.front() == '"' || rest.front() == '\'') continue;
      bool is_more_space = is_space(rest.front()) && name.ends_with(' ');
      if (!is_more_space) name += is_space(rest.front()) ? ' ' : rest.front();
    }
    if (name.empty()) refuse("a section without a name");
    section_ = &sections[name];
    property_.clear();
  }

  // A line with more indentation: of a nested block, or of a multi-line value, which no property
  // here has.
  void read_nested(std::string_view text) {
    if (text.find('=') == text.npos) return;
    auto [name, value] = split(text);
    (*section_)[property_ + "." + name] = without_comment(value);
  }

  std::string_view name_;
  std::uint64_t line_ = 0;
  profile_section* section_ = nullptr;  // in `sections`; null before the first one
  std::string property_;                // the last property of the section; empty if there is none
  std::size_t indentation_ = 0;         // of the line of property_
};

profile_sections parse_profile_file(std::string_view text, std::string_view name) {
  profile_parser parser(name);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    parser.read(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::move(parser.sections);
}

static std::string path_of_profiles(const char* variable, const char* below_home) {
  auto path = first_set({variable});
  if (!path.empty() && !path.starts_with("~/")) return path;
  auto home = first_set({"HOME"});
  if (home.empty()) return {};
  return path.empty() ? home + below_home : home + path.substr(1);
}

static task<profile_sections> load_profile_file(std::string path) {
  if (path.empty()) co_return profile_sections();
  auto text = co_await read_settings(path);
  if (!text) co_return profile_sections();
  co_return parse_profile_file(*text, path);
}

// Adds the properties of a section without replacing existing ones. Returns whether the file has
// the section.
static bool add_section(profile_section& to, const profile_sections& from, std::string_view name) {
  auto found = from.find(name);
  if (found == from.end()) return false;
  to.insert(found->second.begin(), found->second.end());
  return true;
}

task<s3_profile> s3_profile::load(std::string name) {
  if (name.empty()) name = first_set({"AWS_PROFILE"});
  bool is_named = !name.empty();
  s3_profile profile;
  profile.name_ = is_named ? name : "default";
  auto keys_path = path_of_profiles("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
  auto config_path = path_of_profiles("AWS_CONFIG_FILE", "/.aws/config");
  auto keys = co_await load_profile_file(keys_path);
  auto config = co_await load_profile_file(config_path);
  profile.places_ = keys_path + " and " + config_path;
  if (keys_path.empty() && config_path.empty()) profile.places_ = "no file, since HOME is not set";
  bool in_keys = add_section(profile.values_, keys, profile.name_);
  bool in_config = add_section(profile.values_, config, "profile " + profile.name_);
  if (!in_config && profile.name_ == "default")
    in_config = add_section(profile.values_, config, "default");
  profile.exists_ = in_keys || in_config;
  if (is_named && !profile.exists_)
    throw error(errc::invalid_argument, "load profile " + profile.name_,
                "there is no such profile in " + profile.places_);
  if (auto services = profile.value("services"); !services.empty())
    add_section(profile.services_, config, "services " + services);
  co_return profile;
}

std::string s3_profile::value(std::string_view property) const {
  auto found = values_.find(property);
  return found == values_.end() ? std::string() : found->second;
}

std::string s3_profile::endpoint() const {
  auto found = services_.find("s3.endpoint_url");
  return found == services_.end() ? value("endpoint_url") : found->second;
}

}  // namespace lade::io::http
