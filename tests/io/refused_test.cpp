// io_uring refused by a sandbox, as Docker and gVisor do: in a child process, since a seccomp
// filter stays for good.

#include <lade/error.hpp>
#include <lade/runtime.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lade {

// Makes the system calls `first` to `last` of this process fail with `failure`.
static bool refuse(unsigned first, unsigned last, unsigned failure) {
  std::array<sock_filter, 5> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, first, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | failure),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The exit status of a child that runs `check` with the system calls refused; 0 is success.
static int in_sandbox(unsigned first, unsigned last, int failure, bool (*check)(int failure)) {
  auto child = fork();
  if (child == 0) {
    if (!refuse(first, last, static_cast<unsigned>(failure))) _exit(2);
    _exit(check(failure) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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

}  // namespace lade
