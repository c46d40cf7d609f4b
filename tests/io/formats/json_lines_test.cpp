#include <lade/error.hpp>
#include <lade/io/formats/json_lines.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "bytes.hpp"

namespace lade::io::json_lines_test {

using test::stream_of;
using test::texts_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

static std::vector<std::string> lines_of(std::string text, std::size_t chunk_bytes = 1000) {
  return sync_wait(texts_of(read_lines(stream_of(std::move(text), chunk_bytes), "a.txt")));
}

TEST(Lines, EndWithALineFeedAndPerhapsACarriageReturn) {
  for (std::size_t chunk = 1; chunk < 20; ++chunk) {
    EXPECT_THAT(lines_of("one\r\ntwo\n\nfour\rfour", chunk),
                ElementsAre("one", "two", "", "four\rfour"));
    EXPECT_THAT(lines_of("one\n", chunk), ElementsAre("one"));
    EXPECT_THAT(lines_of("\n\r\n", chunk), ElementsAre("", ""));
    EXPECT_THAT(lines_of("", chunk), IsEmpty());
  }
}

TEST(Lines, AreTheSameForAnyChunkSize) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100; ++round) {
    std::string text;
    std::vector<std::string> lines;
    for (auto n = random() % 50; n > 0; --n) {
      lines.emplace_back(random() % 200, 'x');
      text += lines.back() + "\n";
    }
    ASSERT_EQ(lines_of(text, 1 + random() % 500), lines);
  }
}

TEST(Lines, ThatAreTooLongAreRefusedByNumber) {
  for (std::size_t chunk : {1u, 3u, 100u})
    EXPECT_THAT(
        [&] {
          sync_wait(texts_of(
              read_lines(stream_of("abcd\nabcde\n", chunk), "a.txt", {.max_line_bytes = 4})));
        },
        ThrowsMessage<error>("read a.txt: line 2 is longer than max_line_bytes, 4"));
}

class JsonLines : public testing_support::ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, JsonLines,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

TEST_P(JsonLines, BecomeSamplesWithFields) {
  testing_support::temp_dir dir;
  auto path = dir.write("a.jsonl",
                        "{\"text\": \"h\\u00e4\", \"n\": -3, \"x\": 1.0, \"yes\": true}\n\n"
                        "{\"list\": [1, {\"a\": 2}], \"none\": null, \"no\": false}\r\n");
  runtime runtime(options());
  auto samples = sync_wait(runtime, test::collect(read_json_line(sample(path, 7))));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].key(), path + "/1");
  EXPECT_EQ(samples[0].label(), 7);
  EXPECT_EQ(samples[0].field("text").text(), "h\u00e4");
  EXPECT_EQ(samples[0].field("n").integer(), -3);
  EXPECT_EQ(samples[0].field("x").type(), field::kind::number);
  EXPECT_EQ(samples[0].field("yes").integer(), 1);
  EXPECT_EQ(samples[1].key(), path + "/3");
  EXPECT_EQ(samples[1].field("list").text(), "[1, {\"a\": 2}]");
  EXPECT_EQ(samples[1].field("no").integer(), 0);
  EXPECT_EQ(samples[1].fields().size(), 2u);
}

TEST_P(JsonLines, ErrorsNameTheFileTheLineAndTheByte) {
  testing_support::temp_dir dir;
  runtime runtime(options());
  auto refusal = [&](std::string_view text, json_line_options how = {}) -> std::string {
    auto path = dir.write("a.jsonl", text);
    try {
      sync_wait(runtime, test::collect(read_json_line.with(how)(sample(path))));
    } catch (const error& refused) {
      return refused.what();
    }
    return "none";
  };
  auto path = dir / "a.jsonl";
  EXPECT_EQ(refusal("{}\n{\"a\" 1}\n"), "read " + path + ": line 2, byte 5: expected ':'");
  EXPECT_EQ(refusal("[]\n"), "read " + path + ": line 1, byte 0: expected an object");
  EXPECT_EQ(refusal("{} {}\n"), "read " + path + ": line 1, byte 3: expected the end");
  EXPECT_THAT(refusal("{\"a\":1,\"a\":2}\n"), HasSubstr("the name \"a\" twice"));
  EXPECT_THAT(refusal("{\"a\":99999999999999999999}\n"), HasSubstr("integer of 64 bits"));
  EXPECT_EQ(refusal("{\"a\":1,\"b\":2}\n", {.max_fields = 1}),
            "read " + path + ": line 1 has more fields than max_fields, 1");
  EXPECT_THAT(refusal("{\"a\":1}\n", {.max_line_bytes = 3}), HasSubstr("max_line_bytes, 3"));
  auto deep = "{}\n{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}\n";
  EXPECT_THAT(refusal(deep), AllOf(HasSubstr("read " + path + ": line 2"), HasSubstr(" levels")));
}

}  // namespace lade::io::json_lines_test
