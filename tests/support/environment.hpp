// Environment variables of a test.

#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

extern "C" char** environ;

namespace lade::test {

// While the object lives, the given variables replace HOME and all variables whose names begin with
// AWS_. Construct it before threads start that may read the environment, and destroy it after they
// have ended.
class aws_environment {
 public:
  explicit aws_environment(const std::map<std::string, std::string>& wanted) {
    for (char** each = environ; *each; ++each) {
      const std::string_view line = *each;
      auto name = std::string(line.substr(0, line.find('=')));
      if (name.starts_with("AWS_") || name == "HOME") before_[name] = line.substr(name.size() + 1);
    }
    replace(before_, wanted);
    for (auto& [name, value] : wanted) names_[name] = value;
  }
  aws_environment(const aws_environment&) = delete;
  ~aws_environment() { replace(names_, before_); }

 private:
  static void replace(const std::map<std::string, std::string>& old,
                      const std::map<std::string, std::string>& wanted) {
    for (auto& [name, value] : old) unsetenv(name.c_str());
    for (auto& [name, value] : wanted) setenv(name.c_str(), value.c_str(), 1);
  }

  std::map<std::string, std::string> before_;
  std::map<std::string, std::string> names_;
};

}  // namespace lade::test
