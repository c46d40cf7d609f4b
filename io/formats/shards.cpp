#include <lade/error.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

[[noreturn]] static void refuse_pattern(std::string_view pattern, const std::string& reason) {
  throw error(errc::invalid_argument, "expand shards " + without_secrets(pattern), reason);
}

[[noreturn]] static void refuse_many(std::string_view pattern) {
  throw error(errc::limit_exceeded, "expand shards " + without_secrets(pattern),
              fmt::format("more than {} names", shards::max_shards));
}

// A part of a pattern, if it is none of its secrets.
static std::string shown_part(std::string_view pattern, std::string_view part) {
  bool is_shown = without_secrets(pattern).find(part) != std::string::npos;
  return is_shown ? ": " + std::string(part) : std::string();
}

static std::int64_t bound_of(std::string_view pattern, std::string_view text) {
  std::int64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < 0 ||
      value > std::int64_t{1} << 62)
    refuse_pattern(pattern, "a bound of a range is no number" + shown_part(pattern, text));
  return value;
}

static std::vector<std::string> expand_range(std::string_view pattern, std::string_view first,
                                             std::string_view last) {
  auto at = bound_of(pattern, first);
  auto end = bound_of(pattern, last);
  auto is_padded = [](std::string_view text) { return text.size() > 1 && text[0] == '0'; };
  auto width = is_padded(first) || is_padded(last) ? std::max(first.size(), last.size()) : 0;
  auto count = static_cast<std::uint64_t>(at < end ? end - at : at - end) + 1;
  if (count > shards::max_shards) refuse_many(pattern);
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < count; ++i) {
    texts.push_back(fmt::format("{:0{}}", at, width));
    at += at < end ? 1 : -1;
  }
  return texts;
}

// The alternatives in a pair of braces.
static std::vector<std::string> alternatives(std::string_view pattern, std::string_view inside) {
  if (inside.find('{') != inside.npos) refuse_pattern(pattern, "braces in braces");
  if (inside.find(',') == inside.npos) {
    auto dots = inside.find("..");
    if (dots == inside.npos) refuse_pattern(pattern, "braces without a list or a range");
    return expand_range(pattern, inside.substr(0, dots), inside.substr(dots + 2));
  }
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin <= inside.size();) {
    auto end = std::min(inside.find(',', begin), inside.size());
    texts.emplace_back(inside.substr(begin, end - begin));
    begin = end + 1;
  }
  return texts;
}

static void append_each(std::string_view pattern, std::vector<std::string>& names,
                        const std::vector<std::string>& ends) {
  if (names.size() > shards::max_shards / ends.size()) refuse_many(pattern);
  std::vector<std::string> longer;
  longer.reserve(names.size() * ends.size());
  for (const auto& name : names)
    for (const auto& end : ends) longer.push_back(name + end);
  names = std::move(longer);
}

static std::vector<std::string> expand_braces(std::string_view pattern) {
  std::vector<std::string> names{""};
  for (auto rest = pattern; !rest.empty();) {
    auto open = std::min(rest.find('{'), rest.size());
    auto text = rest.substr(0, open);
    if (text.find('}') != text.npos) refuse_pattern(pattern, "a brace that was not opened");
    append_each(pattern, names, {std::string(text)});
    rest.remove_prefix(open);
    if (rest.empty()) break;
    auto close = rest.find('}');
    if (close == rest.npos) refuse_pattern(pattern, "a brace that is not closed");
    append_each(pattern, names, alternatives(pattern, rest.substr(1, close - 1)));
    rest.remove_prefix(close + 1);
  }
  return names;
}

// The length of the directories that all names begin with, with the last slash. A query has none.
static std::size_t common_directories(const std::vector<std::string>& names) {
  std::string_view common = names.front();
  if (!scheme_of(common).empty()) common = common.substr(0, common.find('?'));
  for (std::string_view name : names) {
    auto [here, there] = std::ranges::mismatch(common, name);
    common = common.substr(0, static_cast<std::size_t>(here - common.begin()));
  }
  return common.rfind('/') + 1;
}

shards::shards(std::string_view pattern) : shards(expand_braces(pattern)) {}

shards::shards(std::vector<std::string> names) : names_(std::move(names)) {
  if (names_.empty() || std::ranges::find(names_, "") != names_.end())
    throw error(errc::invalid_argument, "list shards", "there are no shards, or one has no name");
  common_ = common_directories(names_);
}

static async_generator<sample> list_names(std::vector<std::string> names) {
  for (auto& name : names) {
    sample found(std::move(name));
    co_yield std::move(found);
  }
}

async_generator<sample> shards::list() const { return list_names(names_); }

std::vector<sample> shards::list_all() const { return {names_.begin(), names_.end()}; }

std::string shards::identity_of(const sample& shard) const {
  auto& name = shard.key();
  return (scheme_of(name).empty() ? name : without_signature(name)).substr(common_);
}

}  // namespace lade::io
