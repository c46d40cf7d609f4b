#include <lade/error.hpp>
#include <lade/io/glob.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace lade::io {

class glob::parser {
 public:
  parser(std::string_view pattern, bool ignore_case)
      : pattern_(pattern), ignore_case_(ignore_case) {}

  std::vector<alternative> parse() const {
    if (pattern_.empty() || pattern_.front() == '/') refuse("expected a relative path");
    std::vector<alternative> all;
    std::vector<std::string> unread{std::string(pattern_)};
    while (!unread.empty()) {
      auto text = std::move(unread.back());
      unread.pop_back();
      if (!expand_braces(text, unread)) all.push_back(parse_components(text));
      if (all.size() + unread.size() > most_alternatives) refuse("too many alternatives");
    }
    return all;
  }

 private:
  static constexpr std::size_t most_alternatives = 1000;
  static constexpr std::size_t most_components = 63;  // the bits of a position, less one

  [[noreturn]] void refuse(std::string_view reason) const {
    throw error(errc::invalid_argument, "read pattern " + without_secrets(pattern_), reason);
  }

  // The position of the first of `characters` from `at` on that is neither escaped nor in a set;
  // the size of the text if there is none.
  std::size_t find(std::string_view text, std::size_t at, std::string_view characters) const {
    while (at < text.size() && characters.find(text[at]) == characters.npos) at = behind(text, at);
    return at;
  }

  // The position after the character, escaped character or set at `at`.
  std::size_t behind(std::string_view text, std::size_t at) const {
    if (text[at] == '\\') {
      if (at + 1 == text.size()) refuse("'\\' at the end");
      return at + 2;
    }
    return text[at] == '[' ? end_of_set(text, at) + 1 : at + 1;
  }

  std::size_t end_of_set(std::string_view text, std::size_t open) const {
    auto at = open + 1;
    if (at < text.size() && (text[at] == '!' || text[at] == '^')) ++at;
    auto close = text.find(']', at + 1);  // a leading ']' is a member
    if (close == text.npos) refuse("'[' without ']'");
    return close;
  }

  // Replaces the first {a,b} of `text` by each of its alternatives. Returns whether there is one.
  bool expand_braces(std::string_view text, std::vector<std::string>& results) const {
    auto open = find(text, 0, "{");
    if (open == text.size()) return false;
    auto begin = open + 1;
    std::vector<std::string_view> choices;
    int depth = 1;
    auto at = begin;
    for (; depth > 0; ++at) {
      at = find(text, at, "{,}");
      if (at == text.size()) refuse("'{' without '}'");
      if (text[at] == '{') ++depth;
      if (text[at] == '}') --depth;
      if (depth > 1 || text[at] == '{' || (depth == 1 && text[at] == '}')) continue;
      choices.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    }
    for (auto choice : choices)
      results.push_back(std::string(text.substr(0, open)).append(choice).append(text.substr(at)));
    return true;
  }

  alternative parse_components(std::string_view text) const {
    alternative parts;
    for (std::size_t begin = 0; begin < text.size();) {
      auto end = find(text, begin, "/");
      if (end > begin) parts.push_back(parse_component(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    if (parts.size() > most_components) refuse("too many components");
    return parts;
  }

  component parse_component(std::string_view text) const {
    component part;
    part.any_depth = text == "**";
    part.dotted = text.starts_with('.') || text.starts_with("\\.");
    for (std::size_t at = 0; at < text.size(); at = behind(text, at))
      part.pieces.push_back(parse_piece(text.substr(at, behind(text, at) - at)));
    return part;
  }

  piece parse_piece(std::string_view text) const {
    piece result;
    if (text == "*")
      result.star = true;
    else if (text == "?")
      result.bytes.set();
    else if (text.size() > 2)
      result.bytes = parse_set(text.substr(1, text.size() - 2));
    else
      add(result.bytes, text.back(), text.back());
    return result;
  }

  std::bitset<256> parse_set(std::string_view members) const {
    std::bitset<256> bytes;
    bool negated = members.front() == '!' || members.front() == '^';
    if (negated) members.remove_prefix(1);
    while (!members.empty()) {
      bool range = members.size() > 2 && members[1] == '-';
      add(bytes, members[0], members[range ? 2 : 0]);
      members.remove_prefix(range ? 3 : 1);
    }
    return negated ? ~bytes : bytes;
  }

  void add(std::bitset<256>& bytes, char first, char last) const {
    for (auto byte = static_cast<unsigned char>(first);; ++byte) {
      if (byte > static_cast<unsigned char>(last)) return;
      bytes.set(byte);
      bool letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
      if (ignore_case_ && letter) bytes.set(byte ^ 0x20u);
      if (byte == 255) return;
    }
  }

  std::string_view pattern_;
  bool ignore_case_;
};

glob::glob(std::string_view pattern, bool ignore_case)
    : alternatives_(parser(pattern, ignore_case).parse()) {}

bool glob::matches(std::string_view path) const {
  auto at = start();
  while (true) {
    auto end = path.find('/');
    at = enter(at, path.substr(0, end));
    if (end == path.npos) return at.matched();
    path.remove_prefix(end + 1);
  }
}

glob::position glob::start() const {
  std::vector<std::uint64_t> reached;
  for (auto& parts : alternatives_) reached.push_back(skip_any_depth(parts, 1));
  return {*this, std::move(reached)};
}

glob::position glob::enter(const position& directory, std::string_view name) const {
  auto reached = directory.reached_;
  for (std::size_t i = 0; i < reached.size(); ++i)
    reached[i] = step(alternatives_[i], reached[i], name);
  return {*this, std::move(reached)};
}

// "**" also matches zero directories.
std::uint64_t glob::skip_any_depth(const alternative& parts, std::uint64_t reached) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].any_depth && (reached >> i & 1)) reached |= std::uint64_t{1} << (i + 1);
  return reached;
}

std::uint64_t glob::step(const alternative& parts, std::uint64_t reached, std::string_view name) {
  std::uint64_t next = 0;
  bool hidden = name.starts_with('.');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!(reached >> i & 1) || (hidden && !parts[i].dotted)) continue;
    if (parts[i].any_depth)
      next |= std::uint64_t{1} << i;
    else if (matches(parts[i], name))
      next |= std::uint64_t{1} << (i + 1);
  }
  return skip_any_depth(parts, next);
}

// Backtracks only to the last star: it can match everything that an earlier one could.
bool glob::matches(const component& part, std::string_view name) {
  auto& pieces = part.pieces;
  std::size_t piece = 0;
  std::size_t byte = 0;
  std::size_t behind_star = pieces.size() + 1;  // none yet
  std::size_t star_end = 0;                     // the end of the last star's match
  while (byte < name.size()) {
    if (piece < pieces.size() && pieces[piece].star) {
      behind_star = ++piece;
      star_end = byte;
    } else if (piece < pieces.size() &&
               pieces[piece].bytes[static_cast<unsigned char>(name[byte])]) {
      ++piece;
      ++byte;
    } else if (behind_star <= pieces.size()) {
      piece = behind_star;
      byte = ++star_end;
    } else {
      return false;
    }
  }
  while (piece < pieces.size() && pieces[piece].star) ++piece;
  return piece == pieces.size();
}

glob::position::position(const glob& pattern, std::vector<std::uint64_t> reached)
    : reached_(std::move(reached)) {
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    auto end = std::uint64_t{1} << pattern.alternatives_[i].size();
    matched_ = matched_ || (reached_[i] & end) != 0;
    may_match_below_ = may_match_below_ || (reached_[i] & (end - 1)) != 0;
  }
}

rooted_pattern split_pattern(std::string path) {
  auto scheme = path.find("://");
  auto host = scheme == std::string::npos ? 0 : scheme + 3;
  auto begin = host == 0 ? 0 : std::min(path.find('/', host), path.size());
  auto wildcard = path.find_first_of("*?[{\\", begin);
  if (wildcard == std::string::npos) return {std::move(path), "**"};
  auto slash = path.rfind('/', wildcard);
  if (slash == std::string::npos) return {".", std::move(path)};
  auto pattern = path.substr(slash + 1);
  path.resize(std::max<std::size_t>(slash, 1));
  return {std::move(path), std::move(pattern)};
}

}  // namespace lade::io
