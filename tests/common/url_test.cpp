#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/sample.hpp>
#include <lade/url.hpp>

#include "../support/seed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lade::url_test {

using testing::HasSubstr;
using testing::Not;

TEST(Url, IsKnownByItsScheme) {
  EXPECT_EQ(scheme_of("https://host/a"), "https");
  EXPECT_EQ(scheme_of("S3://bucket/a"), "S3");
  for (auto* path : {"a/b", "/a://b", "://a", "", "a b://c", "1a://b"})
    EXPECT_EQ(scheme_of(path), "") << path;
}

TEST(Url, IsShownWithoutSecrets) {
  EXPECT_EQ(without_secrets("https://u:p@h:1/a?prefix=c&token=d&part=7#e"),
            "https://h:1/a?prefix=c&token=...&part=7");
  EXPECT_EQ(without_secrets("https://u:p@h"), "https://h");
  EXPECT_EQ(without_secrets("https://h/a@1.2/b"), "https://h/a@1.2/b");
  EXPECT_EQ(without_secrets("https://h?a@b=c"), "https://h?...");
  EXPECT_EQ(without_secrets("s3://bucket/a?b&c=12345678901"), "s3://bucket/a?b&c=...");
  EXPECT_EQ(without_secrets("a?b=c#d"), "a?b=c#d");
}

TEST(Url, HidesTooMuchIfThePasswordIsNotEncoded) {
  EXPECT_EQ(without_secrets("https://u:p/w@h/x"), "https://...@h/x");
  EXPECT_EQ(without_secrets("https://u:p@w/@h/x?token=a"), "https://...@h/x?token=...");
  EXPECT_EQ(without_secrets("https:///u:p@h/x"), "https:///h/x");
  EXPECT_EQ(without_secrets("tar::https://u:p@h/x"), "tar::https://h/x");
  EXPECT_EQ(without_secrets(" https://u:p@h/x"), " https://h/x");
  for (auto* url : {"https://u:p?w@h", "https://u:p#w@h/x", "https://u:p@h/x?token=a@b"})
    EXPECT_EQ(without_secrets(url), "https://...") << url;
  EXPECT_EQ(without_secrets("https://h:80/a@b"), "https://...@b");  // may be a password
}

TEST(Url, ShowsNoValueThatMayBeASecret) {
  for (auto* query : {"pin=1234", "prefix=a;sig=secret", "prefix=a?sig=secret",
                      "dG9rZW4tdG9rZW4=", "aSecretToken", "dG9rZW4tdG9rZ==", "a;token=secret",
                      "PREFIX=secret", "part=secret"}) {
    auto shown = without_secrets(std::string("https://h/a?") + query);
    EXPECT_THAT(shown, Not(HasSubstr(std::string(query)))) << query;
    EXPECT_THAT(shown, Not(HasSubstr("ecret"))) << query;
    EXPECT_THAT(shown, testing::EndsWith("...")) << query;
  }
  EXPECT_EQ(without_secrets("https://h/a?acl&prefix=&uploads&versionId=x/y"),
            "https://h/a?acl&prefix=&uploads&versionId=x/y");
}

// Letters that occur nowhere else mark the secret, other bytes may be anything.
static std::string random_secret(std::mt19937_64& random, std::string_view others) {
  std::string secret;
  auto length = 1 + random() % 12;
  for (std::size_t i = 0; i < length; ++i) {
    bool is_mark = random() % 2 == 0;
    secret += is_mark ? "QZX"[random() % 3] : others[random() % others.size()];
  }
  return secret;
}

TEST(Url, ShowsNoByteOfASecretWhereverItIs) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto one_of = [&](const std::vector<std::string>& texts) {
    return texts[random() % texts.size()];
  };
  for (int i = 0; i < 20'000; ++i) {
    auto scheme = one_of({"https://", "http://", "s3://", "https:///", "a+b://", "x::https://"});
    auto user = "user:" + random_secret(random, "/?#@:&=;%+ 09ab") + "@";
    auto host = one_of({"host", "host:8080", "10.0.0.1", "[::1]:80"});
    auto path = one_of({"", "/", "/a/b", "/a@b", "/a:b"});
    auto name = one_of({"token", "sig", "X-Amz-Signature", "part", "pin", "a%20b", "Signature"});
    auto value = random_secret(random, "/?@:=;%+ 09ab");
    auto query = one_of({"?", "?prefix=a&", "?uploads&part=7&"}) + name + "=" + value;
    auto fragment = one_of({"", "#", "#" + random_secret(random, "/?@:=&;")});
    bool has_user = random() % 2 == 0;
    auto url = scheme + (has_user ? user : "") + host + path + query + fragment;
    auto shown = without_secrets(url);
    EXPECT_EQ(shown.find_first_of("QZ"), std::string::npos) << url << " is shown as " << shown;
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Url, ThatIsSignedNamesTheSameObjectHoweverItIsSigned) {
  const std::string_view signatures[] = {
      "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2Fb&X-Amz-Date=20260101T000000Z&"
      "X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Security-Token=t&X-Amz-Signature=s",
      "X-Goog-Algorithm=a&X-Goog-Credential=b&X-Goog-Date=c&X-Goog-Expires=1&"
      "X-Goog-SignedHeaders=host&X-Goog-Signature=s",
      "AWSAccessKeyId=a&Expires=1&Signature=s",
      "GoogleAccessId=a&Expires=1&Signature=s",
      "Key-Pair-Id=a&Policy=b&Signature=s",
      "sv=2024&ss=b&srt=o&sp=r&se=2027&st=2026&spr=https&sr=b&sig=s"};
  for (auto each : signatures) {
    const std::string signature(each);
    EXPECT_EQ(without_signature("https://h/a?" + signature), "https://h/a") << signature;
    EXPECT_EQ(without_signature("https://h/a?x=1&" + signature + "&versionId=2&x=#f"),
              "https://h/a?x=1&versionId=2&x=#f")
        << signature;
  }
}

TEST(Url, WithoutAWholeSignatureIsItself) {
  for (auto* url : {"https://h/a", "https://h/a?", "https://h/a?Expires=1", "https://h/a?sig=1&x=2",
                    "https://h/a?Signature=1&Expires=2", "https://h/a?sv=1", "a?b=c#d", "",
                    "https://h/a?sv=2&sig=X&sp=1", "https://h/a?se=2&sig=X&sp=1",
                    "https://h/a?X-Amz-Signature=s", "https://h/a#?X-Amz-Signature=s&sig=1&sv=2",
                    "https://h/a?x-amz-signature=s&x-amz-credential=c&&y"})
    EXPECT_EQ(without_signature(url), url);
}

TEST(Url, PercentEncodedTextIsDecodedOrRefused) {
  EXPECT_EQ(percent_decoded("a%20b%2fC%2F+"), "a b/C/+");
  EXPECT_EQ(percent_decoded("%00%ff"), std::string("\0\xff", 2));
  for (auto* wrong : {"%", "a%2", "%2g", "%%41", "%-1"})
    EXPECT_EQ(percent_decoded(wrong), std::nullopt) << wrong;
}

TEST(Url, WithoutSecretsStaysSo) {
  for (auto* url : {"https://h/a.zip?token=.../b.npy", "https://h/a?X-Amz-Signature=...",
                    "https://h/a?...&x=.../sub/0.mds/17"})
    EXPECT_EQ(without_secrets(url), url);
  EXPECT_EQ(without_secrets("https://h/a?token=...s"), "https://h/a?token=...");
  EXPECT_EQ(without_secrets("https://h/a?token=.../b;sig=s"), "https://h/a?token=...");
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

}  // namespace lade::url_test
