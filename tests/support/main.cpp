// Runs the tests of one program. A program whose tests were all skipped exits with 77, which
// Meson shows as a skip. One that ran no test has failed: a filter matched nothing.

#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto& all = *testing::UnitTest::GetInstance();
  if (RUN_ALL_TESTS() != 0) return 1;
  if (testing::GTEST_FLAG(list_tests)) return 0;
  if (all.test_to_run_count() == 0) {
    std::fputs("no test has run\n", stderr);
    return 1;
  }
  return all.skipped_test_count() == all.test_to_run_count() ? 77 : 0;
}
