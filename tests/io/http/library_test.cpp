#include <lade/io/http/library.hpp>

#include <gmock/gmock.h>

namespace lade::io::http::library_test {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Library, DescribesLibcurlAndTheLibraryOfItsEncryption) {
  EXPECT_THAT(describe(), StartsWith("libcurl/"));
  EXPECT_THAT(describe(), HasSubstr("SSL/"));
}

}  // namespace lade::io::http::library_test
