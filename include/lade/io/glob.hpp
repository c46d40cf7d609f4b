// Patterns for paths, as shells have them.

#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

// A pattern that whole relative paths match or not:
//
//   *       any bytes of a name          [a-z]    one byte of a set; [!a-z] any other
//   ?       any one byte                 {a,b}    a or b, which may be patterns
//   **      as a whole component: any number of directories, also none
//   \x      the character x itself
//
// As in a shell, names that begin with a dot are matched only by a component that does so too.
// Components are separated by '/'. A pattern is immutable; any thread may use it.
class glob {
 public:
  class position;

  // Throws error(invalid_argument) that says what is wrong with the pattern. `ignore_case` makes
  // the letters A-Z and a-z equal.
  explicit glob(std::string_view pattern, bool ignore_case = false);

  bool matches(std::string_view path) const;

  // For walks, which match a name at a time: where the pattern stands at the root, and in the
  // directory `name` of a directory that it has come to.
  position start() const;
  position enter(const position& directory, std::string_view name) const;

 private:
  // One byte out of a set, or a star: any number of any bytes.
  struct piece {
    std::bitset<256> bytes;
    bool star = false;
  };
  struct component {
    std::vector<piece> pieces;
    bool any_depth = false;  // "**"
    bool dotted = false;     // begins with a dot
  };
  using alternative = std::vector<component>;
  class parser;

  static bool matches(const component& part, std::string_view name);
  static std::uint64_t skip_any_depth(const alternative& parts, std::uint64_t reached);
  static std::uint64_t step(const alternative& parts, std::uint64_t reached, std::string_view name);

  std::vector<alternative> alternatives_;
};

// How much of a pattern the names so far have matched.
class glob::position {
 public:
  // Whether the names so far are a match, and whether they and some more can be one.
  bool matched() const noexcept { return matched_; }
  bool may_match_below() const noexcept { return may_match_below_; }

 private:
  friend class glob;

  position(const glob& pattern, std::vector<std::uint64_t> reached);

  std::vector<std::uint64_t> reached_;  // of each alternative: bit i for the first i components
  bool matched_ = false;
  bool may_match_below_ = false;
};

// Where a path with wildcards begins, and the rest.
struct rooted_pattern {
  std::string root;
  std::string pattern;
};

// Splits "train/[0-9]*/**/*.jpg" behind the last directory before a wildcard, one of * ? [ { \,
// into "train" and "[0-9]*/**/*.jpg"; "*.jpg" into "." and itself. What has no wildcard is a root,
// with the pattern "**". In a URL, scheme and host are no pattern.
rooted_pattern split_pattern(std::string path);

}  // namespace lade::io
