// Runs the tests of one program; with --source=stages/map_test.cpp only those of this source. A
// program whose tests were all skipped exits with 77, which Meson shows as a skip. One that ran no
// test has failed: a filter matched nothing.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

// Narrows the filter of GoogleTest to the tests of the source.
static void run_only(std::string_view source) {
  auto& filter = testing::GTEST_FLAG(filter);
  const bool has_filter = filter != "*";
  if (!has_filter) filter.clear();
  char separator = has_filter && filter.find('-') == std::string::npos ? '-' : ':';
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::string_view(test.file()).ends_with(source) == has_filter) continue;
      filter.append(1, separator).append(suite.name()).append(1, '.').append(test.name());
      separator = ':';
    }
  }
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view option = "--source=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(option)) {
    run_only(std::string_view(argv[1]).substr(option.size()));
  }
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (RUN_ALL_TESTS() != 0) return 1;
  if (testing::GTEST_FLAG(list_tests)) return 0;
  if (all.test_to_run_count() == 0) {
    std::fputs("no test has run\n", stderr);
    return 1;
  }
  return all.skipped_test_count() == all.test_to_run_count() ? 77 : 0;
}
