#include <lade/io/http/library.hpp>

#include <gmock/gmock.h>

using testing::HasSubstr;
using testing::StartsWith;

TEST(Library, DescribesLibcurlAndTheLibraryOfItsEncryption) {
  EXPECT_THAT(lade::io::http::describe(), StartsWith("libcurl/"));
  EXPECT_THAT(lade::io::http::describe(), HasSubstr("SSL/"));
}
