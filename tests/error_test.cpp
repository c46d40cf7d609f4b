#include <lade/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace lade {

TEST(Error, SaysWhatWasDoneAndWhy) {
  try {
    raise(ENOENT, "open shard-003.tar");
  } catch (const error& e) {
    EXPECT_STREQ(e.what(), "open shard-003.tar: No such file or directory");
    EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
  }
}

TEST(Error, CarriesCodesOfItsOwn) {
  error e(errc::stopped, "read a.tar");
  EXPECT_STREQ(e.what(), "read a.tar: stopped");
  EXPECT_EQ(e.code(), errc::stopped);
  EXPECT_STREQ(e.code().category().name(), "lade");
}

TEST(Error, ReasonReplacesTheMessageOfTheCode) {
  EXPECT_STREQ(error(errc::invalid_data, "decode x.jpg", "premature end").what(),
               "decode x.jpg: premature end");
}

}  // namespace lade
