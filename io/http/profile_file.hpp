// Parses the files with profiles of AWS programs
// (https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html).

#pragma once

#include <lade/task.hpp>

#include <map>
#include <string>
#include <string_view>

namespace lade::io::http {

// The properties of a section by name. In a nested block, "s3 =" followed by indented lines, a
// property is named "s3.endpoint_url".
using profile_section = std::map<std::string, std::string, std::less<>>;

// Sections by the text in their brackets, with single spaces.
using profile_sections = std::map<std::string, profile_section, std::less<>>;

// Throws error(invalid_data) naming the file and the line, without its text.
profile_sections parse_profile_file(std::string_view text, std::string_view name);

// A profile, and the files that were searched for it.
class s3_profile {
 public:
  // `name`: if empty, the profile of AWS_PROFILE, else "default". Throws error if a file cannot be
  // read, and error(invalid_argument) if neither file has a profile that the program or AWS_PROFILE
  // names.
  static task<s3_profile> load(std::string name);

  const std::string& name() const noexcept { return name_; }
  bool exists() const noexcept { return exists_; }
  const std::string& places() const noexcept { return places_; }  // "~/.aws/credentials and ..."

  // The value of a property; empty if there is none.
  std::string value(std::string_view property) const;

  // The endpoint for S3; empty if there is none.
  std::string endpoint() const;

 private:
  std::string name_;
  std::string places_;
  bool exists_ = false;
  profile_section values_;
  profile_section services_;
};

}  // namespace lade::io::http
