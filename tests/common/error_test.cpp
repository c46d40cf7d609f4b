#include <lade/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace lade::error_test {

TEST(Error, SaysWhatWasDoneAndWhy) {
  try {
    raise(ENOENT, "open shard-003.tar");
  } catch (const error& e) {
    EXPECT_STREQ(e.what(), "open shard-003.tar: No such file or directory");
    EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
  }
}

TEST(Error, CarriesLadesErrorCodes) {
  error e(errc::stopped, "read a.tar");
  EXPECT_STREQ(e.what(), "read a.tar: stopped");
  EXPECT_EQ(e.code(), errc::stopped);
  EXPECT_STREQ(e.code().category().name(), "lade");
}

TEST(Error, ReasonReplacesTheMessageOfTheCode) {
  EXPECT_STREQ(error(errc::invalid_data, "decode x.jpg", "premature end").what(),
               "decode x.jpg: premature end");
}

TEST(Error, HasNoConditionThatItsCategoryDoesNotDefine) {
  EXPECT_NE(std::error_code(errc::stopped), condition::device_lost);
  EXPECT_NE(std::error_code(1, std::system_category()), condition::device_lost);
}

TEST(Condition, HasAMessageAndACategory) {
  const std::error_condition lost = condition::device_lost;
  EXPECT_EQ(lost.message(), "device lost");
  EXPECT_STREQ(lost.category().name(), "lade condition");
}

}  // namespace lade::error_test
