// Glob patterns for paths.

#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

// A pattern for relative paths. A path must match as a whole:
//
//   *       any bytes of a name          [a-z]    one byte of a set; [!a-z] any other
//   ?       any one byte                 {a,b}    a or b, which may be patterns
//   **      as a whole component: any number of directories, also none
//   \x      the character x itself
//
// Components are separated by '/'. As in a shell, a name that begins with a dot is matched only by
// a component that begins with a dot. A pattern is immutable; any thread may use it.
class glob {
 public:
  class position;

  // `ignore_case`: the letters A-Z and a-z are equal. Throws error(invalid_argument) naming the
  // fault of the pattern, also for more than 1000 alternatives or 63 components.
  explicit glob(std::string_view pattern, bool ignore_case = false);

  bool matches(std::string_view path) const;

  // For walks over a tree, which match one name at a time. `start` returns the position at the
  // root, `enter` the position at `name` in `directory`.
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

// The state of a match after the first names of a path.
class glob::position {
 public:
  // `matched`: whether these names match. `may_match_below`: whether a path below them may match.
  bool matched() const noexcept { return matched_; }
  bool may_match_below() const noexcept { return may_match_below_; }

 private:
  friend class glob;

  position(const glob& pattern, std::vector<std::uint64_t> reached);

  std::vector<std::uint64_t> reached_;  // by alternative; bit i: the first i components match
  bool matched_ = false;
  bool may_match_below_ = false;
};

// A path with wildcards: the root, which has none, and the pattern below it.
struct rooted_pattern {
  std::string root;
  std::string pattern;
};

// Splits a path at its first wildcard, one of * ? [ { \, after the last directory before it:
//
//   "train/[0-9]*/**/*.jpg"    "train" and "[0-9]*/**/*.jpg"
//   "*.jpg"                    "." and "*.jpg"
//   "train"                    "train" and "**", because there is no wildcard
//
// The scheme and the host of a URL are never part of the pattern.
rooted_pattern split_pattern(std::string path);

}  // namespace lade::io
