#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/url.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace lade {

using testing::HasSubstr;
using testing::Not;

TEST(Url, IsKnownByItsScheme) {
  EXPECT_EQ(scheme_of("https://host/a"), "https");
  EXPECT_EQ(scheme_of("S3://bucket/a"), "S3");
  for (auto* path : {"a/b", "/a://b", "://a", "", "a b://c", "1a://b"})
    EXPECT_EQ(scheme_of(path), "") << path;
}

TEST(Url, IsShownWithoutSecrets) {
  EXPECT_EQ(without_secrets("https://u:p@h:1/a@b?prefix=c&token=d&part=7#e"),
            "https://h:1/a@b?prefix=c&token=...&part=7");
  EXPECT_EQ(without_secrets("https://u:p@h"), "https://h");
  EXPECT_EQ(without_secrets("https://h?a@b=c"), "https://h?a@b=...");
  EXPECT_EQ(without_secrets("s3://bucket/a?b&c=12345678901"), "s3://bucket/a?b&c=...");
  EXPECT_EQ(without_secrets("a?b=c#d"), "a?b=c#d");
}

TEST(Url, PercentEncodedTextIsDecodedOrRefused) {
  EXPECT_EQ(percent_decoded("a%20b%2fC%2F+"), "a b/C/+");
  EXPECT_EQ(percent_decoded("%00%ff"), std::string("\0\xff", 2));
  for (auto* wrong : {"%", "a%2", "%2g", "%%41", "%-1"})
    EXPECT_EQ(percent_decoded(wrong), std::nullopt) << wrong;
}

TEST(Url, AsTheKeyOfASampleIsShownWithoutSecretsInFailures) {
  runtime runtime;
  std::vector<sample> samples{sample("https://host/a?X-Amz-Signature=secret")};
  auto failing = from(samples) | map([](sample) -> sample { throw std::runtime_error("bad"); });
  std::string what;
  try {
    for (auto& each : runtime.run(failing)) (void)each;
  } catch (const std::exception& failure) {
    what = failure.what();
  }
  EXPECT_THAT(what, HasSubstr("https://host/a?X-Amz-Signature=..."));
  EXPECT_THAT(what, Not(HasSubstr("secret")));
}

}  // namespace lade
