// System calls that a sandbox refuses, io_uring's among them, as Docker and gVisor do: in a child
// process, since a seccomp filter stays for good.

#include "../../io/page_cache.hpp"
#include "../support/reactors.hpp"
#include "../support/temp_dir.hpp"

#include <lade/detail/runtime/operation.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/runtime.hpp>
#include <lade/sleep.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lade::refused_test {

template <std::size_t n>
static bool install(std::array<sock_filter, n> program) {
  sock_fprog filter{static_cast<unsigned short>(n), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Makes the system calls `first` to `last` of this thread fail with `failure`.
static bool refuse(unsigned first, unsigned last, unsigned failure) {
  return install(std::to_array<sock_filter>({
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | failure),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }));
}

// The same for io_uring_register with one operation.
static bool refuse_registering(unsigned operation, unsigned failure) {
  constexpr unsigned io_register = 427;
  return install(std::to_array<sock_filter>({
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, io_register, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, operation, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | failure),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }));
}

static bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The exit status of a child that runs `check`; 0 is success.
static int in_child(const std::function<bool()>& check) {
  auto child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The same with the system calls refused.
static int in_sandbox(unsigned first, unsigned last, int failure, bool (*check)(int failure)) {
  return in_child(
      [=] { return refuse(first, last, static_cast<unsigned>(failure)) && check(failure); });
}

static bool automatic_falls_back(int failure) {
  unsetenv("LADE_REACTOR");
  runtime runtime({.threads = 1});
  return contains(runtime.describe(), "fallback") &&
         contains(runtime.describe(),
                  "io_uring refused: " + std::generic_category().message(failure));
}

static bool demanded_throws(int failure) {
  try {
    runtime runtime({.threads = 1, .reactor = reactor_kind::io_uring});
  } catch (const error& refusal) {
    return refusal.code() == std::error_code(failure, std::system_category());
  }
  return false;
}

constexpr unsigned setup = 425;
constexpr unsigned enter = 426;
constexpr unsigned io_register = 427;

TEST(RefusedRing, AutomaticFallsBackAndSaysWhy) {
  for (int failure : {EPERM, ENOSYS, EACCES, ENOMEM, EINVAL})
    EXPECT_EQ(in_sandbox(setup, io_register, failure, automatic_falls_back), 0) << failure;
}

TEST(RefusedRing, ASandboxThatRefusesOnlyOneOfTheCallsIsNoticed) {
  EXPECT_EQ(in_sandbox(enter, enter, EPERM, automatic_falls_back), 0);
  EXPECT_EQ(in_sandbox(io_register, io_register, EPERM, automatic_falls_back), 0);
}

TEST(RefusedRing, DemandedItIsAnErrorWithTheKernelsReason) {
  for (int failure : {EPERM, ENOSYS})
    EXPECT_EQ(in_sandbox(setup, io_register, failure, demanded_throws), 0) << failure;
}

static bool there_is_a_ring() {
  try {
    detail::make_reactor(reactor_kind::io_uring);
  } catch (const error&) {
    return false;
  }
  return true;
}

static task<std::int64_t> stat_root() {
  struct statx root = {};
  detail::io_operation call = {
      .what = detail::io_operation::kind::stat, .fd = AT_FDCWD, .path = "/", .data = &root};
  co_return co_await detail::operation(call);
}

static bool goes_on_without_its_ring(int failure) {
  if (!there_is_a_ring()) return true;
  runtime runtime({.threads = 1, .reactor = reactor_kind::io_uring});
  bool worked = sync_wait(runtime, stat_root()) == 0;
  bool refused = false;
  testing_support::run_on_reactor(
      runtime, [&] { refused = refuse(enter, enter, static_cast<unsigned>(failure)); });
  bool fails = sync_wait(runtime, stat_root()) == -failure;
  bool fails_again = sync_wait(runtime, stat_root()) == -failure;
  sync_wait(runtime, sleep(std::chrono::milliseconds(1)));
  return worked && refused && fails && fails_again;
}

TEST(RefusedRing, OneThatIsRefusedLaterFailsItsOperationsAndNothingElse) {
  for (int failure : {EPERM, ENOSYS})
    EXPECT_EQ(in_child([=] { return goes_on_without_its_ring(failure); }), 0) << failure;
}

TEST(RefusedRing, OneThatCannotBeEnabledIsAnError) {
  constexpr unsigned enable_rings = 12;
  EXPECT_EQ(in_child([] {
              return !there_is_a_ring() ||
                     (refuse_registering(enable_rings, EPERM) && demanded_throws(EPERM));
            }),
            0);
}

// What a child reads, and with which reactor.
static std::string path_to_read;
static reactor_kind reactor_to_read_with;

static std::string read_in_child(const std::string& path) {
  runtime runtime({.threads = 1, .reactor = reactor_to_read_with});
  return std::string(sync_wait(runtime, io::read_file(path)).text());
}

static bool reads_all_the_same(int) { return read_in_child(path_to_read).size() == 3'000'000; }

static bool fails_naming_the_file(int failure) {
  try {
    read_in_child(path_to_read);
  } catch (const error& thrown) {
    return contains(thrown.what(), path_to_read + ": ") &&
           thrown.code() == std::error_code(failure, std::system_category());
  }
  return false;
}

class RefusedCall : public testing_support::ReactorTest {
 protected:
  void SetUp() override {
    ReactorTest::SetUp();
    path_to_read = dir_.write("file", std::string(3'000'000, 'x'));
    reactor_to_read_with = GetParam();
  }
  void TearDown() override { std::string().swap(path_to_read); }

  testing_support::temp_dir dir_;
};

INSTANTIATE_TEST_SUITE_P(Both, RefusedCall,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

TEST_P(RefusedCall, ShortcutsThatASandboxRefusesAreNotNeeded) {
  constexpr unsigned cachestat = 451;
  for (unsigned shortcut : {unsigned{SYS_preadv2}, unsigned{SYS_openat2}, cachestat})
    for (int failure : {EPERM, ENOSYS})
      EXPECT_EQ(in_sandbox(shortcut, shortcut, failure, reads_all_the_same), 0) << shortcut;
}

static bool is_cached(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  auto missing = detail::uncached_bytes(fd, 3'000'000);
  close(fd);
  return missing < 3'000'000u;
}

static bool bypasses_the_page_cache(int) {
  runtime runtime({.threads = 1, .reactor = reactor_to_read_with});
  return sync_wait(runtime, io::read_file(path_to_read, {io::page_cache::bypass})).size() ==
         3'000'000;
}

TEST_P(RefusedCall, AFileIsReadPastThePageCacheAlsoIfNobodyKnowsWhatThatHas) {
  testing_support::evict(path_to_read);
  if (is_cached(path_to_read)) GTEST_SKIP() << "the file system keeps all files in memory";
  constexpr unsigned cachestat = 451;
  EXPECT_EQ(in_sandbox(cachestat, cachestat, ENOSYS, bypasses_the_page_cache), 0);
  EXPECT_FALSE(is_cached(path_to_read));
}

TEST_P(RefusedCall, AFileWhoseSizeCannotBeAskedIsAnErrorThatNamesIt) {
  EXPECT_EQ(in_sandbox(SYS_newfstatat, SYS_newfstatat, EIO, fails_naming_the_file), 0);
}

TEST_P(RefusedCall, AReadThatFailsOnAHelperThreadIsAnErrorThatNamesTheFile) {
  testing_support::evict(path_to_read);
  if (is_cached(path_to_read)) GTEST_SKIP() << "the file system keeps all files in memory";
  bool has_helpers = GetParam() == reactor_kind::fallback;
  EXPECT_EQ(in_sandbox(SYS_pread64, SYS_pread64, EIO,
                       has_helpers ? fails_naming_the_file : reads_all_the_same),
            0);
}

}  // namespace lade::refused_test
