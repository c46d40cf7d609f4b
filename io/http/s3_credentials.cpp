#include "credential_sources.hpp"
#include "settings.hpp"

#include <lade/error.hpp>
#include <lade/io/http/s3_credentials.hpp>

#include <array>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

// Throws for blanks, such as a line break from a file that was read into a variable.
static void require_no_blanks(const char* variable, std::string_view value) {
  if (value.find_first_of(" \t\r\n") == value.npos) return;
  throw error(errc::invalid_argument, "find credentials in the environment",
              std::string(variable) + " has a blank or a line break in it");
}

std::optional<s3_credentials> s3_credentials_from_environment() {
  auto id = first_set({"AWS_ACCESS_KEY_ID"});
  auto secret = first_set({"AWS_SECRET_ACCESS_KEY"});
  if (id.empty() || secret.empty()) return std::nullopt;
  require_no_blanks("AWS_ACCESS_KEY_ID", id);
  require_no_blanks("AWS_SECRET_ACCESS_KEY", secret);
  return s3_credentials(std::move(id), std::move(secret), first_set({"AWS_SESSION_TOKEN"}));
}

// The credentials of a source that must have some.
static task<s3_credentials> require_credentials(task<credential_search> search) {
  auto result = co_await std::move(search);
  if (!result.found()) throw error(errc::invalid_argument, "find credentials", result.reason());
  co_return *result.found();
}

s3_credentials_function s3_environment_credentials() {
  return [] { return require_credentials(search_environment()); };
}

s3_credentials_function s3_web_identity_credentials() {
  return [] { return require_credentials(search_web_identity()); };
}

s3_credentials_function s3_profile_credentials(std::string_view profile) {
  return [name = std::string(profile)] { return require_credentials(search_profile(name)); };
}

s3_credentials_function s3_container_credentials() {
  return [] { return require_credentials(search_container()); };
}

s3_credentials_function s3_instance_credentials() {
  return [] { return require_credentials(search_instance()); };
}

static task<credential_search> search_default_profile() { return search_profile({}); }

static task<s3_credentials> find_default_credentials() {
  using source = std::pair<const char*, task<credential_search> (*)()>;
  constexpr std::array<source, 5> sources{{{"the environment", search_environment},
                                           {"web identity", search_web_identity},
                                           {"profile files", search_default_profile},
                                           {"container metadata", search_container},
                                           {"instance metadata", search_instance}}};
  std::string looked;
  for (auto& [name, search] : sources) {
    auto result = co_await search();
    if (result.found()) co_return *result.found();
    looked += fmt::format("{}{} ({})", looked.empty() ? "" : "; ", name, result.reason());
  }
  throw error(errc::invalid_argument, "find credentials",
              "no credentials were found: looked in " + looked);
}

s3_credentials_function s3_default_credentials() { return find_default_credentials; }

}  // namespace lade::io::http
