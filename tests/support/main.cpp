// Runs the tests of one program. A program whose tests were all skipped exits with 77, which
// Meson shows as a skip.

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto& all = *testing::UnitTest::GetInstance();
  if (RUN_ALL_TESTS() != 0) return 1;
  return all.skipped_test_count() > 0 && all.skipped_test_count() == all.test_to_run_count() ? 77
                                                                                             : 0;
}
