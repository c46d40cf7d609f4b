#include <lade/error.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/thread_pool.hpp>

#include "../support/pipelines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <memory>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/coroutines.hpp"
#include "../support/temp_dir.hpp"

namespace lade::thread_pool_test {

using testing_support::temp_dir;

using testing_support::counted;

// Blocks a pool's thread until lift() is called.
class roadblock {
 public:
  explicit roadblock(thread_pool& pool) {
    pool.post({stand, new std::shared_ptr(state_)});
    state_->standing.acquire();
  }
  void lift() { state_->lifted.release(); }

 private:
  struct state {
    std::binary_semaphore standing{0};
    std::binary_semaphore lifted{0};
  };

  // The thread may leave after the roadblock is gone.
  static void stand(void* shared) noexcept {
    std::unique_ptr<std::shared_ptr<state>> mine(static_cast<std::shared_ptr<state>*>(shared));
    (*mine)->standing.release();
    (*mine)->lifted.acquire();
  }

  std::shared_ptr<state> state_ = std::make_shared<state>();
};

struct numbered_job {
  std::vector<int>& order;
  int number;

  detail::job job() {
    return {[](void* self) noexcept {
              auto& mine = *static_cast<numbered_job*>(self);
              mine.order.push_back(mine.number);
            },
            this};
  }
};

TEST(ThreadPool, RunsJobsInTheOrderOfTheirArrival) {
  std::vector<int> order;
  std::vector<numbered_job> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back({order, i});
  {
    thread_pool pool({.threads = 1});
    roadblock block(pool);
    for (auto& each : jobs) pool.post(each.job());
    EXPECT_TRUE(order.empty());
    block.lift();
  }  // runs what has been posted
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(i);
  EXPECT_EQ(order, expected);
}

TEST(ThreadPool, RunsJobsInTheOrderOfTheirArrivalHoweverNearTheyAre) {
  std::vector<int> order;
  std::vector<numbered_job> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back({order, i});
  {
    thread_pool pool({.threads = 1});
    roadblock block(pool);
    for (auto& each : jobs) {
      auto job = each.job();
      job.distance = static_cast<unsigned>(each.number * 7 % 5);
      pool.post(job);
    }
    block.lift();
  }  // runs what has been posted
  std::vector<int> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(i);
  EXPECT_EQ(order, expected);
}

TEST(ThreadPool, KnowsWhetherTheNextJobIsNearer) {
  std::vector<int> order;
  numbered_job near{order, 0};
  thread_pool pool({.threads = 1});
  EXPECT_FALSE(pool.has_nearer(9));
  roadblock block(pool);
  auto job = near.job();
  job.distance = 2;
  pool.post(job);
  EXPECT_TRUE(pool.has_nearer(3));
  EXPECT_FALSE(pool.has_nearer(2));
  block.lift();
}

TEST(ThreadPool, KnowsWhetherAThreadIsIdle) {
  thread_pool pool({.threads = 2});
  test::wait_until([&] { return pool.has_idle_thread(); });
  roadblock first(pool);
  test::wait_until([&] { return pool.has_idle_thread(); });
  roadblock second(pool);
  EXPECT_FALSE(pool.has_idle_thread());
  first.lift();
  test::wait_until([&] { return pool.has_idle_thread(); });
  second.lift();
}

struct reposting_job {
  thread_pool& pool;
  int left;

  void post() {
    pool.post({[](void* self) noexcept {
                 auto& mine = *static_cast<reposting_job*>(self);
                 if (--mine.left > 0) mine.post();
               },
               this});
  }
};

TEST(ThreadPool, ItsDestructionRunsWhatJobsPost) {
  std::unique_ptr<thread_pool> pool =
      std::make_unique<thread_pool>(thread_pool_options{.threads = 2});
  reposting_job job{*pool, 1000};
  job.post();
  pool.reset();
  EXPECT_EQ(job.left, 0);
}

static int add(int a, int b) { return a + b; }
static counted pass(counted value) { return value; }
static void throw_up() { throw std::runtime_error("why"); }

static task<std::thread::id> run_all(thread_pool& pool) {
  EXPECT_EQ(co_await pool.run(add, 1, 2), 3);
  int value =
      co_await pool.run([](const std::string& text) { return std::stoi(text); }, std::string("42"));
  EXPECT_EQ(value, 42);
  auto number = std::make_unique<int>(7);
  auto sum = [](std::unique_ptr<int> a, int b) { return *a + b; };
  value = co_await pool.run(sum, std::move(number), 1);
  EXPECT_EQ(value, 8);
  co_return co_await pool.run([] { return std::this_thread::get_id(); });
}

TEST(ThreadPool, RunsFunctionsWithArguments) {
  thread_pool pool({.threads = 1});
  EXPECT_NE(sync_wait(run_all(pool)), std::this_thread::get_id());
}

static task<int> pass_counted(thread_pool& pool) {
  auto first = co_await pool.run(pass, counted(1));
  counted named(2);
  auto second = co_await pool.run(pass, named);
  auto third = co_await pool.run(pass, std::move(named));
  co_return first.value() + second.value() + third.value();
}

TEST(ThreadPool, DestroysArgumentsAndResultsOnce) {
  counted::check check;
  thread_pool pool({.threads = 1});
  EXPECT_EQ(sync_wait(pass_counted(pool)), 5);
}

TEST(ThreadPool, ThrowsWhatAFunctionThrows) {
  thread_pool pool({.threads = 1});
  EXPECT_THROW(sync_wait(pool.run(throw_up)), std::runtime_error);
}

TEST(ThreadPool, ItsThreadsHaveItsName) {
  thread_pool pool({.threads = 2, .name = "a name of more than 15 bytes"});
  EXPECT_EQ(pool.size(), 2u);
  auto name = [] {
    char text[16] = {};
    pthread_getname_np(pthread_self(), text, sizeof text);
    return std::string(text);
  };
  EXPECT_EQ(sync_wait(pool.run(name)), "a name of more ");
}

TEST(ThreadPool, AllItsThreadsWork) {
  std::atomic<int> arrived = 0;
  auto meet = [](void* count) noexcept {
    auto& all = *static_cast<std::atomic<int>*>(count);
    ++all;
    while (all < 3) std::this_thread::yield();
  };
  {
    thread_pool pool({.threads = 3});
    for (int i = 0; i < 3; ++i) pool.post({meet, &arrived});
  }
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadPool, RunSomeRunsOneJobOrNone) {
  std::vector<int> order;
  numbered_job first{order, 1}, second{order, 2};
  thread_pool pool({.threads = 1});
  roadblock block(pool);
  pool.run_some();
  pool.post(first.job());
  pool.post(second.job());
  pool.run_some();
  EXPECT_THAT(order, testing::ElementsAre(1));
  block.lift();
}

TEST(ThreadPool, ManyThreadsMayPost) {
  std::atomic<int> sum = 0;
  auto add_one = [](void* count) noexcept { ++*static_cast<std::atomic<int>*>(count); };
  {
    thread_pool pool({.threads = 2});
    testing_support::race(
        5000, [&](int) { pool.post({add_one, &sum}); }, [&](int) { pool.post({add_one, &sum}); });
  }
  EXPECT_EQ(sum, 10'000);
}

TEST(AvailableCpus, ObeysTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_cpus(), 1u);
  EXPECT_EQ(thread_pool().size(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(available_cpus(), 1u);
  EXPECT_LE(available_cpus(), static_cast<unsigned>(CPU_COUNT(&before)));
}

TEST(AvailableCpus, ReadsTheQuotaOfACgroup) {
  EXPECT_EQ(detail::cpus_granted("max 100000\n"), 0u);
  EXPECT_EQ(detail::cpus_granted(""), 0u);
  EXPECT_EQ(detail::cpus_granted("nonsense"), 0u);
  EXPECT_EQ(detail::cpus_granted("100000"), 0u);
  EXPECT_EQ(detail::cpus_granted("100000 0"), 0u);
  EXPECT_EQ(detail::cpus_granted("-1 100000"), 0u);
  EXPECT_EQ(detail::cpus_granted("400000 100000\n"), 4u);
  EXPECT_EQ(detail::cpus_granted("150000 100000\n"), 2u);
  EXPECT_EQ(detail::cpus_granted("140000 100000\n"), 1u);
  EXPECT_EQ(detail::cpus_granted("1000 100000\n"), 1u);
}

TEST(AvailableCpus, TheSmallestQuotaFromTheProcesssCgroupUpCounts) {
  temp_dir dir;
  auto root = dir.path().string();
  dir.write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  EXPECT_EQ(detail::cpu_quota(root), 0u);
  dir.write("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
  dir.write("sys/fs/cgroup/slurm/job_8/cpu.max", "100000 100000\n");
  EXPECT_EQ(detail::cpu_quota(root), 0u);
  dir.write("sys/fs/cgroup/slurm/job_7/cpu.max", "400000 100000\n");
  dir.write("sys/fs/cgroup/slurm/cpu.max", "600000 100000\n");
  EXPECT_EQ(detail::cpu_quota(root), 4u);
  dir.write("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "500000 100000\n");
  EXPECT_EQ(detail::cpu_quota(root), 4u);
  dir.write("sys/fs/cgroup/cpu.max", "300000 100000\n");  // as in a container
  EXPECT_EQ(detail::cpu_quota(root), 3u);
}

TEST(AvailableCpus, QuotasOfCgroupsOfTheFirstVersionCount) {
  temp_dir dir;
  auto root = dir.path().string();
  dir.write("proc/self/cgroup", "5:memory:/user\n4:cpu,cpuacct:/user/7\n0::/user/7\n");
  dir.write("sys/fs/cgroup/cpu,cpuacct/user/7/cpu.cfs_quota_us", "-1\n");
  dir.write("sys/fs/cgroup/cpu,cpuacct/user/7/cpu.cfs_period_us", "100000\n");
  dir.write("sys/fs/cgroup/memory/user/cpu.cfs_quota_us", "100000\n");
  dir.write("sys/fs/cgroup/memory/user/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(detail::cpu_quota(root), 0u);
  dir.write("sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_quota_us", "250000\n");
  dir.write("sys/fs/cgroup/cpu,cpuacct/user/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(detail::cpu_quota(root), 5u);
}

TEST(AvailableCpus, WithoutCgroupsThereIsNoQuota) {
  temp_dir dir;
  EXPECT_EQ(detail::cpu_quota(dir.path().string()), 0u);
}

// Ends the process when this thread opens a file.
static void forbid_opening() {
  auto program = std::to_array<sock_filter>({
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  });
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(2);
}

TEST(AvailableCpusDeathTest, TheQuotaIsReadOnce) {
  auto first = available_cpus();
  EXPECT_EXIT(
      {
        forbid_opening();
        _exit(available_cpus() == first ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        forbid_opening();
        detail::cpu_quota();
        _exit(0);
      },
      testing::KilledBySignal(SIGSYS), "");
}

// Those on which the thread that calls it may run.
static std::vector<unsigned> cpus_of_this_thread() {
  cpu_set_t set;
  pthread_getaffinity_np(pthread_self(), sizeof set, &set);
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

TEST(ThreadPool, KeepsToTheCpusOfItsOptions) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  unsigned last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &mine)) --last;
  thread_pool pool({.cpus = std::span(&last, 1)});
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_EQ(sync_wait(pool.run(cpus_of_this_thread)), std::vector{last});
  EXPECT_EQ(sync_wait(pool.run([] { return sched_getcpu(); })), static_cast<int>(last));
}

TEST(ThreadPool, RefusesCpusThatItCannotHave) {
  auto says = testing::StartsWith("keep the threads of a pool on the CPUs of its options: ");
  std::array<unsigned, 1> none{CPU_SETSIZE - 1};
  EXPECT_THAT([&] { thread_pool({.cpus = none}); }, testing::ThrowsMessage<error>(says));
  std::array<unsigned, 1> beyond{1'000'000};
  EXPECT_THAT(
      [&] { thread_pool({.threads = 2, .cpus = beyond}); },
      testing::ThrowsMessage<error>("make a thread pool: a number in cpus is 1000000; it must "
                                    "be from 0 to 1023"));
}

// The CPUs that the system grants of these. It omits CPUs that a container may not use.
static std::vector<unsigned> cpus_given_for(const std::vector<unsigned>& wanted) {
  std::vector<unsigned> granted;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (auto cpu : wanted) CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    granted = cpus_of_this_thread();
  }).join();
  return granted;
}

TEST(ThreadPool, KeepsToANumaNode) {
  std::string list;
  if (!std::getline(std::ifstream("/sys/devices/system/node/node0/cpulist"), list))
    GTEST_SKIP() << "the kernel reports no NUMA nodes";
  auto cpus = detail::cpus_in_list(list);
  thread_pool pool({.numa_node = 0});
  EXPECT_EQ(pool.size(), cpus.size());
  EXPECT_EQ(sync_wait(pool.run(cpus_of_this_thread)), cpus_given_for(cpus));
}

TEST(ThreadPool, RefusesANodeThatIsNotThere) {
  EXPECT_THAT([] { thread_pool({.numa_node = 1023}); },
              testing::ThrowsMessage<error>(testing::HasSubstr("no NUMA node 1023")));
  EXPECT_THAT([] { thread_pool({.numa_node = -5u}); },
              testing::ThrowsMessage<error>("make a thread pool: numa_node is 4294967291; it must "
                                            "be from 0 to 1023"));
  std::array<unsigned, 1> some{0};
  EXPECT_THAT([&] { thread_pool({.cpus = some, .numa_node = 0}); },
              testing::ThrowsMessage<error>(testing::HasSubstr("both cpus and numa_node")));
}

TEST(AvailableCpus, ReadsTheListsOfLinux) {
  using cpus = std::vector<unsigned>;
  EXPECT_EQ(detail::cpus_in_list("0-3,8\n"), (cpus{0, 1, 2, 3, 8}));
  EXPECT_EQ(detail::cpus_in_list("5"), cpus{5});
  EXPECT_EQ(detail::cpus_in_list(""), cpus{});
  EXPECT_EQ(detail::cpus_in_list("3-1"), cpus{});
  for (auto odd : {"x", "1-", "-1", "1,,2", "4096", "99999999999999999999", "0-99999", "1 2"})
    EXPECT_THROW(detail::cpus_in_list(odd), error) << odd;
}

TEST(ThreadPoolDeathTest, DestructionOnOneOfItsThreadsEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto destroy = [](thread_pool* pool) {
    pool->post({[](void* object) noexcept { delete static_cast<thread_pool*>(object); }, pool});
    while (true) std::this_thread::yield();
  };
  EXPECT_DEATH(destroy(new thread_pool({.threads = 1})),
               "lade: a thread pool was destroyed on one of its own threads");
}

}  // namespace lade::thread_pool_test
