#include "../support/seed.hpp"

#include <lade/error.hpp>
#include <lade/io/glob.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io::glob_test {

using testing::ThrowsMessage;

static bool match(std::string_view pattern, std::string_view path) {
  return glob(pattern).matches(path);
}

TEST(Glob, AStarStaysInsideOfAName) {
  EXPECT_TRUE(match("*.jpg", "a.jpg"));
  EXPECT_TRUE(match("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(match("a*b*c", "aXbYb"));
  EXPECT_FALSE(match("*.jpg", "train/a.jpg"));
  EXPECT_TRUE(match("*/*.jpg", "train/a.jpg"));
}

TEST(Glob, TwoStarsAreAnyDirectories) {
  for (auto path : {"a.jpg", "x/a.jpg", "x/y/z/a.jpg"}) EXPECT_TRUE(match("**/*.jpg", path));
  EXPECT_TRUE(match("**", "a/b/c"));
  EXPECT_TRUE(match("train/**/a", "train/a"));
  EXPECT_TRUE(match("**/a/**/b", "a/x/a/y/b"));
  EXPECT_FALSE(match("train/**/a", "a"));
}

TEST(Glob, SetsHaveRangesAndCanBeNegated) {
  EXPECT_TRUE(match("[a-cx]", "b"));
  EXPECT_TRUE(match("[a-cx]", "x"));
  EXPECT_FALSE(match("[a-cx]", "d"));
  EXPECT_TRUE(match("[!a-c]", "d"));
  EXPECT_FALSE(match("[^a-c]", "a"));
  EXPECT_TRUE(match("[]a]", "]"));
  EXPECT_TRUE(match("[a-]", "-"));
  EXPECT_TRUE(match("[{,}]", ","));
}

TEST(Glob, BracesAreAlternativesAndNest) {
  for (auto path : {"a.jpg", "a.jpeg", "a.png"}) EXPECT_TRUE(match("*.{jp{,e}g,png}", path));
  EXPECT_FALSE(match("*.{jp{,e}g,png}", "a.gif"));
  EXPECT_TRUE(match("{train/**,val}/x", "train/1/x"));
  EXPECT_TRUE(match("{a}{b,c}", "ac"));
}

TEST(Glob, ABackslashEscapesACharacter) {
  EXPECT_TRUE(match(R"(\*\{\[\\)", R"(*{[\)"));
  EXPECT_FALSE(match(R"(\*)", "a"));
}

TEST(Glob, HiddenNamesMustBeAskedFor) {
  EXPECT_FALSE(match("*", ".hidden"));
  EXPECT_FALSE(match("[.]hidden", ".hidden"));
  EXPECT_FALSE(match("**/*.jpg", ".cache/a.jpg"));
  EXPECT_TRUE(match("**/.*/*.jpg", "x/.cache/a.jpg"));
}

TEST(Glob, CaseCanBeIgnored) {
  EXPECT_FALSE(match("*.jpg", "A.JPG"));
  EXPECT_TRUE(glob("*.jpg", true).matches("A.JPG"));
  EXPECT_TRUE(glob("[A-C]", true).matches("b"));
  EXPECT_FALSE(glob("@", true).matches("`"));
}

TEST(Glob, AnyByteCounts) {
  EXPECT_TRUE(match("?\xff*", "\xfe\xff\xfd"));
  EXPECT_TRUE(match("[\x80-\xff]", "\xff"));
}

TEST(Glob, KnowsWhatCannotMatchBelow) {
  glob pattern("train/*/*.jpg");
  auto train = pattern.enter(pattern.start(), "train");
  EXPECT_TRUE(train.may_match_below());
  EXPECT_FALSE(pattern.enter(pattern.start(), "val").may_match_below());
  auto file = pattern.enter(pattern.enter(train, "cat"), "1.jpg");
  EXPECT_TRUE(file.matched());
  EXPECT_FALSE(file.may_match_below());
}

TEST(Glob, MistakesAreExplained) {
  EXPECT_THAT([] { glob("a{b"); }, ThrowsMessage<error>("read pattern a{b: '{' without '}'"));
  EXPECT_THAT([] { glob("a[b"); }, ThrowsMessage<error>("read pattern a[b: '[' without ']'"));
  EXPECT_THAT([] { glob("a\\"); }, ThrowsMessage<error>("read pattern a\\: '\\' at the end"));
  EXPECT_THROW(glob("/a"), error);
  EXPECT_THROW(glob(""), error);
  std::string many;
  for (int i = 0; i < 20; ++i) many += "{a,b}";
  EXPECT_THROW(glob{many}, error);
}

TEST(Glob, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(match(pattern + "b", std::string(10'000, 'a')));
}

// The plain twin: tries everything, a character at a time. `begins` says that a component does.
static bool plain_match(std::string_view p, std::string_view s, bool begins = true) {
  if (p.empty()) return s.empty();
  if (s.empty() && (p == "/**" || p.starts_with("/**/"))) return plain_match(p.substr(3), s, false);
  if (begins && p == "**") return true;
  if (begins && p.starts_with("**/")) {
    auto slash = s.find('/');
    return plain_match(p.substr(3), s) || (slash != s.npos && plain_match(p, s.substr(slash + 1)));
  }
  if (p[0] == '{') {
    auto comma = p.find(',');
    auto close = p.find('}');
    auto with = [&](std::string_view choice) {
      return plain_match(std::string(choice).append(p.substr(close + 1)), s, begins);
    };
    return with(p.substr(1, comma - 1)) || with(p.substr(comma + 1, close - comma - 1));
  }
  bool inside = !s.empty() && s[0] != '/';
  if (p[0] == '*')
    return plain_match(p.substr(1), s, false) || (inside && plain_match(p, s.substr(1), false));
  if (p[0] == '[') {
    auto close = p.find(']');
    bool negated = p[1] == '^';
    return inside && (p.substr(1, close).find(s[0]) == p.npos) == negated &&
           plain_match(p.substr(close + 1), s.substr(1), false);
  }
  if (p[0] == '?') return inside && plain_match(p.substr(1), s.substr(1), false);
  return s.starts_with(p[0]) && plain_match(p.substr(1), s.substr(1), p[0] == '/');
}

// A piece of a pattern and something that it matches.
struct sample {
  std::string pattern;
  std::string path;
};

static sample random_sample(std::mt19937& random, const std::vector<sample>& pieces) {
  sample chosen;
  auto add = [&](const sample& piece) {
    chosen.pattern += piece.pattern;
    chosen.path += piece.path;
  };
  auto components = 1 + random() % 4;
  for (unsigned i = 0; i < components; ++i) {
    if (i > 0) add({"/", "/"});
    for (auto length = 1 + random() % 3; length > 0; --length)
      add(pieces[random() % pieces.size()]);
  }
  return chosen;
}

TEST(Glob, AgreesWithAPlainMatcher) {
  auto seed = test::new_seed();
  std::mt19937 random(seed);
  const std::vector<sample> letters{{"a", "a"}, {"b", "b"}, {"c", "c"}};
  const std::vector<sample> pieces{{"a", "a"},       {"b", "b"},      {"*", "cab"},
                                   {"?", "c"},       {"[ab]", "b"},   {"[^a]", "c"},
                                   {"{a,bc}", "bc"}, {"{a,*b}", "cb"}};
  for (int i = 0; i < 300; ++i) {
    auto [pattern, example] = random_sample(random, pieces);
    if (random() % 3 == 0) pattern = "**/" + pattern, example = "b/a/" + example;
    if (random() % 3 == 0) pattern += "/**", example += "/c/a";
    glob ours(pattern);
    EXPECT_TRUE(ours.matches(example)) << pattern << " on " << example << ", seed " << seed;
    for (int j = 0; j < 100; ++j) {
      auto path = random_sample(random, letters).path;
      ASSERT_EQ(ours.matches(path), plain_match(pattern, path))
          << pattern << " on " << path << ", seed " << seed;
    }
  }
}

static std::string split(std::string path) {
  auto [root, pattern] = split_pattern(std::move(path));
  return root + " | " + pattern;
}

TEST(Glob, IsWhatFollowsTheDirectoriesBeforeAWildcard) {
  EXPECT_EQ(split("train"), "train | **");
  EXPECT_EQ(split("train/"), "train/ | **");
  EXPECT_EQ(split(""), " | **");
  EXPECT_EQ(split("*.jpg"), ". | *.jpg");
  EXPECT_EQ(split("/*.jpg"), "/ | *.jpg");
  EXPECT_EQ(split("a/b/c?/*.{jpg,png}"), "a/b | c?/*.{jpg,png}");
  EXPECT_EQ(split("a/b\\*"), "a | b\\*");
  EXPECT_EQ(split("s3://bucket"), "s3://bucket | **");
  EXPECT_EQ(split("s3://bucket/train/**/*.jpg"), "s3://bucket/train | **/*.jpg");
  EXPECT_EQ(split("s3://bucket/*"), "s3://bucket | *");
  EXPECT_EQ(split("http://[::1]:80/a/[0-9]"), "http://[::1]:80/a | [0-9]");
  EXPECT_EQ(split("s3://b*"), "s3://b* | **");
}

}  // namespace lade::io::glob_test
