#include "../../cuda/loaded_library.hpp"

#include <lade/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/coroutines.hpp"

namespace lade::cuda::loaded_library_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::code_of;

TEST(LoadedLibrary, IsTheFirstThatTheLoaderFinds) {
  loaded_library maths("mathematics", {"libno-such-library.so.1", "libm.so.6", "libc.so.6"});
  EXPECT_EQ(maths.file(), "libm.so.6");
  double (*cosine)(double) = nullptr;
  maths.find("cos", cosine);
  EXPECT_EQ(cosine(0), 1);
}

TEST(LoadedLibrary, ThatIsMissingNamesAllThatWasTried) {
  auto load = [] { loaded_library("nvSomething", {"libno-such.so.2", "libno-such.so.1"}); };
  EXPECT_EQ(code_of(load), errc::unsupported);
  EXPECT_THAT(load, ThrowsMessage<error>(AllOf(HasSubstr("load nvSomething: "),
                                               HasSubstr("libno-such.so.2: cannot open"),
                                               HasSubstr("libno-such.so.1: cannot open"))));
}

TEST(LoadedLibrary, NamesAFunctionThatItDoesNotHave) {
  loaded_library maths("mathematics", {"libm.so.6"});
  void (*missing)() = nullptr;
  auto find = [&] { maths.find("no_such_function", missing); };
  EXPECT_EQ(code_of(find), errc::unsupported);
  EXPECT_THAT(find, ThrowsMessage<error>(
                        AllOf(HasSubstr("load mathematics: "), HasSubstr("no_such_function"))));
}

}  // namespace lade::cuda::loaded_library_test
