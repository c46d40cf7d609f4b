// Searches one source for credentials.

#pragma once

#include <lade/io/http/s3_credentials.hpp>
#include <lade/task.hpp>

#include <optional>
#include <string>
#include <utility>

namespace lade::io::http {

// Credentials, or the reason why a source has none.
class credential_search {
 public:
  explicit credential_search(s3_credentials keys) : found_(std::move(keys)) {}
  explicit credential_search(std::string why_not) : reason_(std::move(why_not)) {}

  const std::optional<s3_credentials>& found() const noexcept { return found_; }
  const std::string& reason() const noexcept { return reason_; }

 private:
  std::optional<s3_credentials> found_;
  std::string reason_;
};

// The sources of s3_credentials.hpp. They throw errors for a source that is configured and fails.
task<credential_search> search_environment();
task<credential_search> search_web_identity();
task<credential_search> search_profile(std::string name);
task<credential_search> search_container();
task<credential_search> search_instance();

}  // namespace lade::io::http
