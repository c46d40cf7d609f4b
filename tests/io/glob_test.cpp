#include <lade/error.hpp>
#include <lade/io/glob.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>
#include <string_view>

namespace lade::io {

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

TEST(Glob, ABackslashTakesTheMeaningAway) {
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

// The plain twin: the same pattern as a regular expression.
static std::string regex_of(std::string_view pattern) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    bool begins = i == 0 || pattern[i - 1] == '/';
    if (begins && pattern.substr(i).starts_with("**/")) {
      text += "(?:[^/]+/)*";
      i += 2;
    } else if (begins && pattern.substr(i) == "**") {
      if (text.ends_with('/'))
        text.pop_back(), text += "(?:/[^/]+)*";
      else
        text += "[^/]+(?:/[^/]+)*";
      return text;
    } else if (pattern[i] == '*') {
      text += "[^/]*";
    } else if (pattern[i] == '?') {
      text += "[^/]";
    } else if (pattern[i] == '^') {
      text += "^/";
    } else if (pattern[i] == '{') {
      text += "(?:";
    } else if (pattern[i] == ',') {
      text += '|';
    } else if (pattern[i] == '}') {
      text += ')';
    } else {
      text += pattern[i];
    }
  }
  return text;
}

static std::string random_words(std::mt19937& random, const std::vector<std::string>& words) {
  std::string text;
  auto components = 1 + random() % 4;
  for (unsigned i = 0; i < components; ++i) {
    if (i > 0) text += '/';
    for (auto length = 1 + random() % 3; length > 0; --length)
      text += words[random() % words.size()];
  }
  return text;
}

TEST(Glob, AgreesWithRegularExpressions) {
  auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> letters{"a", "b", "c"};
  const std::vector<std::string> parts{"a", "b", "*", "?", "[ab]", "[^a]", "{a,bc}", "{a,*b}"};
  int matched = 0;
  for (int i = 0; i < 300; ++i) {
    auto pattern = random_words(random, parts);
    if (random() % 3 == 0) pattern = "**/" + pattern;
    if (random() % 3 == 0) pattern += "/**";
    glob ours(pattern);
    std::regex theirs(regex_of(pattern));
    for (int j = 0; j < 100; ++j) {
      auto path = random_words(random, letters);
      ASSERT_EQ(ours.matches(path), std::regex_match(path, theirs)) << pattern << " on " << path;
      matched += ours.matches(path);
    }
  }
  EXPECT_GT(matched, 1000);
}

}  // namespace lade::io
