#include "../support/json.hpp"
#include "../support/seed.hpp"

#include <lade/error.hpp>
#include <lade/support/json.hpp>
#include <lade/support/json_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace lade::detail::json_reader_test {

using testing::ElementsAre;
using testing::ThrowsMessage;

static bool is_read(std::string_view text) {
  try {
    support::json_reader json(text, "text");
    json.skip();
    json.end();
    return true;
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_data);
    return false;
  }
}

static std::string string_of(std::string_view text) {
  return support::json_reader(text, "text").string();
}

TEST(JsonReader, ReadsObjectsAndArrays) {
  support::json_reader json(R"( {"a": [1, 2.5, -3e2], "b": {"c": null, "d": true}} )", "text");
  std::vector<double> numbers;
  bool flag = false;
  json.object([&](const std::string& name) {
    if (name == "a")
      json.array([&] { numbers.push_back(json.number()); });
    else
      json.object([&](const std::string& inner) {
        if (inner == "c")
          json.null();
        else
          flag = json.boolean();
      });
  });
  json.end();
  EXPECT_THAT(numbers, ElementsAre(1, 2.5, -300));
  EXPECT_TRUE(flag);
}

TEST(JsonReader, DecodesEscapes) {
  EXPECT_EQ(string_of(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(string_of(R"("\u0041\u00e4\u20ac\ud83d\ude00")"), "A\u00e4\u20ac\U0001F600");
  EXPECT_EQ(string_of("\"\u00e4\u20ac\U0001F600\""), "\u00e4\u20ac\U0001F600");
  EXPECT_EQ(string_of(R"("\u0000")"), std::string(1, '\0'));
}

TEST(JsonReader, DistinguishesIntegersFromNumbers) {
  EXPECT_EQ(std::get<std::int64_t>(support::json_reader("9223372036854775807", "t").any_number()),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(std::get<double>(support::json_reader("1.0", "t").any_number()), 1.0);
  EXPECT_EQ(std::get<double>(support::json_reader("1e2", "t").any_number()), 100.0);
  EXPECT_EQ(support::json_reader("18446744073709551615", "t").unsigned_integer(),
            ~std::uint64_t{0});
  EXPECT_THROW(support::json_reader("9223372036854775808", "t").integer(), error);
  EXPECT_THROW(support::json_reader("-1", "t").unsigned_integer(), error);
  EXPECT_THROW(support::json_reader("1.5", "t").integer(), error);
  EXPECT_THROW(support::json_reader("1e999", "t").number(), error);
}

TEST(JsonReader, RefusesTextOutsideTheGrammar) {
  for (auto text : {"",
                    " ",
                    "{",
                    "[",
                    "[1,]",
                    "[,1]",
                    "{\"a\":1,}",
                    "{a:1}",
                    "{\"a\" 1}",
                    "01",
                    "-",
                    "+1",
                    ".5",
                    "1.",
                    "1e",
                    "1e+",
                    "NaN",
                    "Infinity",
                    "tru",
                    "nul",
                    "'a'",
                    "\"a",
                    "\"\\x\"",
                    "\"\\u12g4\"",
                    "\"\\u12\"",
                    "\"\\ud800\"",
                    "\"\\ud800\\u0041\"",
                    "\"\\udc00\"",
                    "\"\n\"",
                    "\"\xff\"",
                    "\"\xc0\x80\"",
                    "1 2",
                    "[1] x",
                    "\xef\xbb\xbf"
                    "1",
                    "{\"a\":1,\"a\":2}",
                    "[1 2]",
                    "// a\n1"})
    EXPECT_FALSE(is_read(text)) << text;
  for (auto text : {"{}", "[]", "0", "-0", "1e-2", "\"\"", " [ ] ", "[[],{}]", "\t\r\n null"})
    EXPECT_TRUE(is_read(text)) << text;
}

TEST(JsonReader, ErrorsNameTheTextTheLineAndTheByte) {
  EXPECT_THAT([] { support::json_reader("[1, x]", "a.json").skip(); },
              ThrowsMessage<error>("read a.json: byte 4: expected a value"));
  EXPECT_THAT([] { support::json_reader("1", "a.jsonl", 7).string(); },
              ThrowsMessage<error>("read a.jsonl: line 7, byte 0: expected a string"));
  EXPECT_THAT([] { support::json_reader(R"({"a":1,"a":2})", "a.json").skip(); },
              ThrowsMessage<error>("read a.json: byte 13: an object has the name \"a\" twice"));
}

TEST(JsonReader, NestingIsBounded) {
  auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_TRUE(is_read(nested(support::json_reader::max_depth)));
  EXPECT_FALSE(is_read(nested(support::json_reader::max_depth + 1)));
  EXPECT_FALSE(is_read(std::string(10'000'000, '[')));
}

TEST(JsonReader, ReadsWhatIsWrittenForAnyBytes) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (auto n = random() % 50; n > 0; --n) text += static_cast<char>(random() % 128);
    EXPECT_EQ(string_of(support::json_of(text)), text);
  }
}

// Another reader agrees about which texts are JSON, but for names that occur twice and texts that
// are not UTF-8.
TEST(JsonReader, AcceptsTheTextsThatAreJson) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::vector<std::string> tokens{"{",     "}",    "[",    "]", ",",  ":",
                                        "1",     "-",    ".",    "e", "0",  "\"a\"",
                                        "\"b\"", "true", "null", " ", "\"", "\\"};
  int good = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto n = 1 + random() % 8; n > 0; --n) text += tokens[random() % tokens.size()];
    bool json = test::is_json(text);
    good += json;
    bool read = is_read(text);
    EXPECT_TRUE(read == json || (json && text.find('"') != text.npos)) << text;
  }
  EXPECT_GT(good, 20);
}

}  // namespace lade::detail::json_reader_test
