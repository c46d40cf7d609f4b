// The files in which programs for AWS keep profiles
// (https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html).

#pragma once

#include <lade/task.hpp>

#include <map>
#include <string>
#include <string_view>

namespace lade::io::http {

// Properties of a section by name. Those of a nested block, "s3 =" with indented lines below it,
// are called "s3.endpoint_url".
using profile_section = std::map<std::string, std::string, std::less<>>;

// Sections by what stands in their brackets, with single spaces.
using profile_sections = std::map<std::string, profile_section, std::less<>>;

// Throws error(invalid_data) that names the file and the line, and shows nothing of it.
profile_sections parse_profile_file(std::string_view text, std::string_view name);

// A profile, and where it was looked for.
class s3_profile {
 public:
  // `name`: empty for the profile of AWS_PROFILE, or else "default". Throws error if a file cannot
  // be read, and error(invalid_argument) if neither file has a profile that is named by the program
  // or by AWS_PROFILE.
  static task<s3_profile> load(std::string name);

  const std::string& name() const noexcept { return name_; }
  bool exists() const noexcept { return exists_; }
  const std::string& places() const noexcept { return places_; }  // "~/.aws/credentials and ..."

  // Empty if it has none.
  std::string value(std::string_view property) const;

  // The endpoint for S3 that it says; empty if none.
  std::string endpoint() const;

 private:
  std::string name_;
  std::string places_;
  bool exists_ = false;
  profile_section values_;
  profile_section services_;
};

}  // namespace lade::io::http
