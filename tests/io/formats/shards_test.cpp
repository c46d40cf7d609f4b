#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/formats/shards.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../../support/pipelines.hpp"

namespace lade::io::shards_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Shards, BracesAreRangesAndLists) {
  EXPECT_THAT(shards("a.tar").names(), ElementsAre("a.tar"));
  EXPECT_THAT(shards("s-{008..010}.tar").names(),
              ElementsAre("s-008.tar", "s-009.tar", "s-010.tar"));
  EXPECT_THAT(shards("{8..10}").names(), ElementsAre("8", "9", "10"));
  EXPECT_THAT(shards("{02..0}").names(), ElementsAre("02", "01", "00"));
  EXPECT_THAT(shards("{a,b,}{0..1}x").names(), ElementsAre("a0x", "a1x", "b0x", "b1x", "0x", "1x"));
}

TEST(Shards, APatternThatMakesNoSenseIsRefused) {
  for (auto pattern : {"{", "a}", "{0..1}}", "{}", "{a}", "{a..b}", "{1..}", "{0..1..2}", "{-1..1}",
                       "{a,{b,c}}", "", "{,a}", "{0..99999999999999999999}"})
    EXPECT_THAT([&] { shards all(pattern); }, testing::Throws<error>()) << pattern;
  EXPECT_THAT([] { shards all("s-{0..1"); },
              ThrowsMessage<error>("expand shards s-{0..1: a brace that is not closed"));
  EXPECT_THAT([] { shards all("https://u:secret@h/{0..1?sig=secret"); },
              ThrowsMessage<error>("expand shards https://h/{0..1?sig=...: a brace that is not "
                                   "closed"));
  EXPECT_THAT([] { shards all(std::vector<std::string>{}); },
              ThrowsMessage<error>(HasSubstr("there are no shards")));
}

TEST(Shards, TooManyAreRefusedBeforeTheyAreMade) {
  for (auto pattern : {"{0..999999999999}", "{0..9999}{0..9999}{0..9999}"})
    EXPECT_THAT([&] { shards all(pattern); }, ThrowsMessage<error>(HasSubstr("more than 10000000")))
        << pattern;
}

TEST(Shards, AreASourceWhoseNamesAreComparedWithoutTheirDirectory) {
  runtime runtime({.threads = 2});
  shards all("data/{0..2}.tar");
  std::vector<std::string> keys;
  for (auto& shard : test::collect(runtime, from(all))) keys.push_back(shard.key());
  EXPECT_EQ(keys, all.names());
  EXPECT_EQ(all.identity_of(all.list_all()[1]), "1.tar");
  EXPECT_EQ(shards("x/{a,b}/0.tar").identity_of(sample("x/b/0.tar")), "b/0.tar");
}

TEST(Shards, HaveTheSameIdentityHoweverTheirUrlsAreSigned) {
  auto identity = [](const std::string& name) {
    return shards(std::vector<std::string>{name}).identity_of(sample(name));
  };
  const std::string signature = "X-Amz-Credential=a/b&X-Amz-Date=1&X-Amz-Signature=";
  EXPECT_EQ(identity("https://h/d/a.tar?" + signature + "c/d"), "a.tar");
  EXPECT_EQ(identity("https://h/d/a.tar?" + signature + "e&x=y/z"), "a.tar?x=y/z");
  EXPECT_EQ(identity("x/a?" + signature + "b/0.tar"), "0.tar");  // of a file
}

TEST(Shards, ThatAreRefusedHaveNoSecretInTheError) {
  auto refusal = [](const std::string& pattern) -> std::string {
    try {
      shards all(pattern);
    } catch (const error& failure) {
      return failure.what();
    }
    return "none";
  };
  const std::string signature = "?X-Amz-Signature=SECRET";
  EXPECT_EQ(refusal("https://h/{0..9" + signature),
            "expand shards https://h/{0..9?X-Amz-Signature=...: a brace that is not closed");
  EXPECT_EQ(refusal("https://h/{0..99999999}" + signature),
            "expand shards https://h/{0..99999999}?X-Amz-Signature=...: more than 10000000 names");
  EXPECT_THAT(refusal("https://h/{0..x}" + signature), HasSubstr("is no number: x"));
  EXPECT_THAT(refusal("https://h/a?sig={SECRET..9}"), testing::EndsWith("is no number"));
}

}  // namespace lade::io::shards_test
