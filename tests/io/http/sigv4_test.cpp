#include "../../../io/http/sigv4.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace lade::io::http::sigv4_test {

using namespace std::chrono;

// The examples of Amazon's documentation, with its published keys.
static std::string signature_of(std::string_view method, std::string_view url,
                                http::header_list headers, std::string_view body = {}) {
  s3_signer signer("us-east-1");
  s3_credentials keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
  auto then = sys_days(year(2013) / May / 24);
  signer.sign(method, url, headers, keys, sha256_text(body), then);
  auto& authorization = headers.back().second;
  return authorization.substr(authorization.find("Signature=") + 10);
}

TEST(Sigv4, SignsAsTheExamplesOfItsDocumentation) {
  const std::string host = "https://examplebucket.s3.amazonaws.com";
  EXPECT_EQ(signature_of("GET", host + "/test.txt", {{"Range", "bytes=0-9"}}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(signature_of("PUT", host + "/test%24file.text",
                         {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                          {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                         "Welcome to Amazon S3."),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(signature_of("GET", host + "/?lifecycle", {}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature_of("GET", host + "/?prefix=J&max-keys=2", {}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(Sigv4, CoversTheSessionToken) {
  s3_signer signer("us-east-1");
  http::header_list headers;
  signer.sign("GET", "https://host/a", headers, s3_credentials("id", "secret", "token"),
              "UNSIGNED-PAYLOAD", sys_days(year(2013) / May / 24));
  EXPECT_THAT(headers, testing::Contains(testing::Pair("x-amz-security-token", "token")));
  EXPECT_THAT(headers.back().second, testing::HasSubstr("x-amz-date;x-amz-security-token,"));
}

TEST(Sigv4, TagsOfObjectsInPartsAreThoseOfTheirParts) {
  const std::vector<std::string> tags{"\"d41d8cd98f00b204e9800998ecf8427e\"",
                                      "0cc175b9c0f1b6a831c399e269772661"};
  EXPECT_EQ(multipart_tag(tags), "68083ea43d0307eecfa2b4749f19df15-2");
  EXPECT_EQ(multipart_tag(std::vector<std::string>{"d41d8cd98f00b204e9800998ecf8427"}), "");
  EXPECT_EQ(multipart_tag(std::vector<std::string>{"x41d8cd98f00b204e9800998ecf8427e"}), "");
}

TEST(Sigv4, EncodesEveryByteThatIsNotPlain) {
  EXPECT_EQ(percent_encoded("a b/c+d~\xC3\xA4", true), "a%20b/c%2Bd~%C3%A4");
  EXPECT_EQ(percent_encoded("a/b", false), "a%2Fb");
}

}  // namespace lade::io::http::sigv4_test
