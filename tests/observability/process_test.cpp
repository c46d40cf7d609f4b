#include <lade/process.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace lade::process_test {

using detail::network_bytes_of;
using detail::proc_number;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ProcessStatistics, AreThoseOfThisProcess) {
  auto now = read_process_statistics({.pss = true});
  EXPECT_GT(now.rss_bytes.value_or(0), 100'000u);
  EXPECT_GE(now.threads.value_or(0), 1u);
  EXPECT_GE(now.descriptors.value_or(0), 1u);
  EXPECT_TRUE(now.cpu_user && now.cpu_system);
}

TEST(ProcessStatistics, HaveDiskAndNetworkBytesIfTheKernelReportsThem) {
  auto now = read_process_statistics();
  EXPECT_EQ(now.disk_read_bytes.has_value(), access("/proc/self/io", R_OK) == 0);
  EXPECT_EQ(now.disk_written_bytes.has_value(), access("/proc/self/io", R_OK) == 0);
  EXPECT_EQ(now.network_in_bytes.has_value(), access("/proc/self/net/dev", R_OK) == 0);
  EXPECT_EQ(now.network_out_bytes.has_value(), access("/proc/self/net/dev", R_OK) == 0);
}

TEST(ProcessStatistics, ShareOutSharedPagesIfAsked) {
  if (access("/proc/self/smaps_rollup", R_OK) != 0) GTEST_SKIP() << "no /proc/self/smaps_rollup";
  auto now = read_process_statistics({.pss = true});
  ASSERT_TRUE(now.pss_bytes && now.rss_bytes);
  EXPECT_GT(*now.pss_bytes, 10'000u);
  EXPECT_LE(*now.pss_bytes, *now.rss_bytes + (std::uint64_t{1} << 20));
}

TEST(ProcessStatistics, DoNotReadTheCostlyFigureUnlessAsked) {
  EXPECT_FALSE(read_process_statistics().pss_bytes);
}

TEST(ProcessStatistics, CountWhatIsOpened) {
  auto before = read_process_statistics();
  if (!before.descriptors) GTEST_SKIP() << "no /proc/self/fd";
  int opened = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(read_process_statistics().descriptors, *before.descriptors + 1);
  close(opened);
  EXPECT_EQ(read_process_statistics().descriptors, before.descriptors);
}

TEST(ProcessStatistics, CpuTimesOnlyGrow) {
  auto before = read_process_statistics();
  auto after = read_process_statistics();
  EXPECT_GE(*after.cpu_user, *before.cpu_user);
  EXPECT_GE(*after.cpu_system, *before.cpu_system);
}

TEST(ProcessStatistics, AreJsonWithNullForWhatIsNotKnown) {
  process_statistics some;
  some.rss_bytes = 4096;
  some.cpu_user = std::chrono::milliseconds(1500);
  auto text = to_json(some);
  EXPECT_THAT(text, StartsWith("{\"rss_bytes\":4096,\"pss_bytes\":null,\"cpu_user\":1.500000,"));
  EXPECT_THAT(text, HasSubstr("\"descriptors\":null}"));
}

TEST(ProcNumber, IsTheOneBehindTheName) {
  std::string text = "Name:\tlade VmRSS: 7 kB\nVmRSSx:\t1 kB\nVmRSS:\t    2048 kB\nThreads:\t12\n";
  EXPECT_EQ(proc_number(text, "VmRSS"), 2048u * 1024);
  EXPECT_EQ(proc_number(text, "Threads"), 12u);
  EXPECT_EQ(proc_number(text, "Name"), std::nullopt);
  EXPECT_EQ(proc_number(text, "VmPeak"), std::nullopt);
}

TEST(ProcNumber, OddTextHasNone) {
  for (auto* text : {"", "\n\n", "a", "a:", "a: ", "a: x", "a: -1", "a: 1 MB", "a: 1kB", "a : 1",
                     " a: 1", "a: 18446744073709551616", "a: 18446744073709551615 kB"})
    EXPECT_EQ(proc_number(text, "a"), std::nullopt) << text;
  EXPECT_EQ(proc_number("b: 1\na: 5", "a"), 5u);
  EXPECT_EQ(proc_number("a:18446744073709551615\n", "a"), ~std::uint64_t{0});
}

static const std::string headings =
    "Inter-|   Receive              |  Transmit\n face |bytes    packets errs |bytes  packets\n";

TEST(NetworkBytes, AreTheSumOfAllOtherInterfaces) {
  auto sum = network_bytes_of(headings +
                              "    lo: 99 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n"
                              "  eth0:1000 2 0 0 0 0 0 0 200 3 0 0 0 0 0 0\n"
                              "wlan0.1: 7 2 0 0 0 0 0 0 5 3 0 0 0 0 0 0");
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->in, 1007u);
  EXPECT_EQ(sum->out, 205u);
}

TEST(NetworkBytes, OddTextHasNone) {
  for (auto* text : {"eth0", "eth0: 1", "eth0: 1 2 3 4 5 6 7 8", "eth0: 1 2 3 4 5 6 7 8 x", ":",
                     "eth0: 18446744073709551616 2 3 4 5 6 7 8 9"})
    EXPECT_FALSE(network_bytes_of(headings + text)) << text;
  EXPECT_FALSE(network_bytes_of(""));
  EXPECT_FALSE(network_bytes_of(headings));
}

TEST(NetworkBytes, ExcludeTheLoopback) {
  auto sum = network_bytes_of(headings + "lo: 1 2 3 4 5 6 7 8 9\n");
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->in + sum->out, 0u);
}

}  // namespace lade::process_test
