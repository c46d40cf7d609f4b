// Reading files from a kernel that fails where it hurts: this program has a make_reactor of its
// own, whose reactor asks the test what each system call is to return, and has cached nothing that
// could be had without one.

#include "../../io/cached_calls.hpp"
#include "../../io/open_files.hpp"
#include "../../io/page_cache.hpp"
#include "../support/temp_dir.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace lade {

using detail::io_operation;
using testing::ThrowsMessage;
using testing_support::evict;
using testing_support::temp_dir;

int detail::open_cached(const context&, int, const std::string&) noexcept { return -1; }

std::size_t detail::read_cached(const context&, int, std::span<std::byte>, std::uint64_t,
                                const std::string&) noexcept {
  return 0;
}

static std::int64_t real_call(const io_operation& call) {
  std::int64_t result = -1;
  if (call.what == io_operation::kind::open)
    result = openat(call.fd, call.path, call.flags);
  else if (call.what == io_operation::kind::read)
    result = pread(call.fd, call.data, call.bytes, static_cast<off_t>(call.offset));
  return result < 0 ? -errno : result;
}

constexpr std::int64_t never = -1'000'000;  // the call does not return until it is cancelled

// What the calls return; set before the runtime is made. And how many descriptors were left open.
static std::function<std::int64_t(const io_operation&)> answer;
static std::atomic<int> open_files = 0;
static std::atomic<std::size_t> most_direct_bytes = 0;  // of the O_DIRECT reads in flight at a time

class scripted_reactor final : public detail::reactor {
 public:
  std::string describe() const override { return "scripted"; }
  void close(int fd) noexcept override {
    --open_files;
    ::close(fd);
  }

 private:
  void turn(detail::clock::time_point deadline) noexcept override {
    bool asked = !submitted_.empty();  // the test may have posted something then
    std::size_t direct_bytes = 0;
    while (auto* call = submitted_.pop()) {
      if (call->direct) direct_bytes += call->bytes;
      call->progress = io_operation::status::started;
      auto result = answer(*call);
      if (result == never) continue;
      if (call->what == io_operation::kind::open && result >= 0) ++open_files;
      finish(*call, result);
    }
    auto most = most_direct_bytes.load();
    while (most < direct_bytes && !most_direct_bytes.compare_exchange_weak(most, direct_bytes)) {}
    std::unique_lock lock(mutex_);
    if (!asked && deadline != detail::clock::time_point::min())
      woken_.wait(lock, [this] { return wake_; });
    wake_ = false;
  }
  void cancel_begun(io_operation& call) noexcept override { finish(call, -ECANCELED); }
  void wake() noexcept override {
    {
      std::lock_guard lock(mutex_);
      wake_ = true;
    }
    woken_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
};

std::unique_ptr<detail::reactor> detail::make_reactor(reactor_kind) {
  return std::make_unique<scripted_reactor>();
}

class Faults : public testing::Test {
 protected:
  ~Faults() override {
    answer = nullptr;
    EXPECT_EQ(open_files, 0);
    EXPECT_EQ(memory_.stats().used_bytes, 0u);
  }

  static task<std::string> read_here(std::string path, io::read_options options,
                                     buffer_pool& memory) {
    context execution = co_await this_context();
    execution.home = &execution.runtime->reactor();
    execution.memory = &memory;
    auto content = co_await with_context(execution, io::read_file(std::move(path), options));
    co_return std::string(content.text());
  }

  std::string read(std::string path, std::stop_token stop = {}, io::read_options options = {}) {
    runtime runtime({.threads = 1});
    return sync_wait(runtime, read_here(std::move(path), options, memory_), std::move(stop));
  }

  buffer_pool memory_;
  temp_dir dir_;
  std::string content_ = std::string(100'000, 'a') + std::string(100'000, 'b');
  std::string path_ = dir_.write("file", content_);
};

TEST_F(Faults, ShortReadsAreContinued) {
  answer = [](io_operation call) {
    call.bytes = std::min(call.bytes, std::size_t{1} + call.offset / 2);
    return real_call(call);
  };
  EXPECT_EQ(read(path_), content_);
}

TEST_F(Faults, SignalsAreSurvived) {
  int calls = 0;
  answer = [&](const io_operation& call) {
    return ++calls % 3 == 0 ? real_call(call) : std::int64_t{-EINTR};
  };
  EXPECT_EQ(read(path_), content_);
}

TEST_F(Faults, AnErrorInTheMiddleNamesTheFile) {
  answer = [](io_operation call) {
    if (call.what == io_operation::kind::read && call.offset > 0) return std::int64_t{-EIO};
    call.bytes = std::min<std::size_t>(call.bytes, 1000);
    return real_call(call);
  };
  EXPECT_THAT([&] { read(path_); }, ThrowsMessage<error>("read " + path_ + ": Input/output error"));
}

TEST_F(Faults, AFileThatVanishedNamesIt) {
  answer = real_call;
  unlink(path_.c_str());
  EXPECT_THAT([&] { read(path_); },
              ThrowsMessage<error>("open " + path_ + ": No such file or directory"));
}

TEST_F(Faults, AFileThatShrinksEndsThere) {
  answer = [&](const io_operation& call) {
    if (call.what == io_operation::kind::read) std::filesystem::resize_file(path_, 10);
    return real_call(call);
  };
  EXPECT_EQ(read(path_), "aaaaaaaaaa");
}

// Makes a file of zeros that takes no room on the disk.
static std::string write_sparse(const temp_dir& dir, std::size_t bytes) {
  auto path = dir.write("sparse", "");
  std::filesystem::resize_file(path, bytes);
  return path;
}

TEST_F(Faults, ALargeFileIsReadInPiecesOutsideTheReactor) {
  constexpr std::size_t bytes = (std::size_t{50} << 20) + 10;
  std::size_t pieces = 0;
  answer = [&](const io_operation& call) {
    if (call.what == io_operation::kind::read) {
      ++pieces;
      EXPECT_LE(call.bytes, std::size_t{1} << 20);
      EXPECT_EQ(call.apart, bytes - call.offset > 10) << call.offset;
    }
    return real_call(call);
  };
  EXPECT_EQ(read(write_sparse(dir_, bytes)), std::string(bytes, '\0'));
  EXPECT_EQ(pieces, 51u);
}

static task<std::size_t> size_when_read(std::string path) {
  auto content = co_await io::read_file(std::move(path));
  co_return content.size();
}

TEST_F(Faults, AFileOfSeveralGigabytesIsReadPieceAfterPiece) {
  constexpr std::size_t bytes = (std::size_t{5} << 30) + 3;
  std::size_t read = 0;
  answer = [&](const io_operation& call) {
    if (call.what != io_operation::kind::read) return real_call(call);
    EXPECT_EQ(call.offset, read);
    read += call.bytes;  // the memory stays untouched
    return static_cast<std::int64_t>(call.bytes);
  };
  runtime runtime({.threads = 1});
  auto path = write_sparse(dir_, bytes);
  EXPECT_EQ(detail::sync_wait_on(runtime.reactor(), runtime, size_when_read(path)), bytes);
  EXPECT_EQ(read, bytes);
}

TEST_F(Faults, SmallFilesAreReadByTheReactor) {
  answer = [](const io_operation& call) {
    EXPECT_FALSE(call.apart);
    return real_call(call);
  };
  EXPECT_EQ(read(path_), content_);
}

TEST_F(Faults, AStopEndsALargeReadAfterThePieceInFlight) {
  std::stop_source stop;
  std::size_t pieces = 0;
  answer = [&](const io_operation& call) {
    if (call.what == io_operation::kind::read && ++pieces == 3) stop.request_stop();
    return real_call(call);
  };
  auto path = write_sparse(dir_, std::size_t{50} << 20);
  EXPECT_THAT([&] { read(path, stop.get_token()); },
              ThrowsMessage<error>("read " + path + ": stopped"));
  EXPECT_EQ(pieces, 3u);
}

// Asks for a file past the page cache, from which it has been taken.
class DirectFaults : public Faults {
 protected:
  void SetUp() override {
    int direct_reads = 0;
    evict(path_);
    answer = [&](const io_operation& call) {
      direct_reads += call.direct;
      return real_call(call);
    };
    (void)read(path_, {}, {io::page_cache::bypass});
    answer = real_call;
    if (direct_reads == 0) GTEST_SKIP() << "the file system keeps all files in memory";
    evict(path_);
  }
};

TEST_F(DirectFaults, AFileSystemThatRefusesIsReadThroughThePageCache) {
  answer = [](const io_operation& call) {
    return call.direct ? std::int64_t{-EINVAL} : real_call(call);
  };
  EXPECT_EQ(read(path_, {}, {io::page_cache::bypass}), content_);
}

TEST_F(DirectFaults, AReadThatEndsWithinAPageIsContinued) {
  answer = [](const io_operation& call) {
    auto result = real_call(call);
    return call.direct ? std::min<std::int64_t>(result, 5000) : result;
  };
  EXPECT_EQ(read(path_, {}, {io::page_cache::bypass}), content_);
}

TEST_F(DirectFaults, AnErrorOfTheDiskIsNotTriedAgain) {
  answer = [](const io_operation& call) {
    return call.what == io_operation::kind::read ? std::int64_t{-EIO} : real_call(call);
  };
  EXPECT_THAT([&] { read(path_, {}, {io::page_cache::bypass}); },
              ThrowsMessage<error>("read " + path_ + ": Input/output error"));
}

static task<> count_bytes(std::string path, io::page_cache policy, std::size_t& bytes) {
  auto content = co_await io::read_file(std::move(path), {policy});
  bytes += content.size();
}

static task<> read_together(std::vector<std::string> paths, io::page_cache policy,
                            std::size_t& bytes) {
  scope children(co_await this_context());
  for (auto& path : paths) children.start(count_bytes(path, policy, bytes));
  co_await children.join();
}

TEST_F(DirectFaults, WhatIsInFlightAtADeviceIsBounded) {
  constexpr std::size_t file_bytes = std::size_t{6} << 20;
  std::vector<std::string> paths;
  for (int i = 0; i < 12; ++i) {
    paths.push_back(dir_.write(std::to_string(i), std::string(file_bytes, 'x')));
    evict(paths.back());
  }
  most_direct_bytes = 0;
  answer = real_call;
  std::size_t bytes = 0;
  {
    runtime runtime({.threads = 1});
    detail::sync_wait_on(runtime.reactor(), runtime,
                         read_together(paths, io::page_cache::bypass, bytes));
  }
  EXPECT_EQ(bytes, paths.size() * file_bytes);
  EXPECT_EQ(most_direct_bytes, std::size_t{32} << 20);
}

// Whether one of many files that are read together is read past the page cache.
static bool read_hurried(const std::vector<std::string>& paths, io::page_cache policy) {
  bool past = false;
  answer = [&](const io_operation& call) {
    past = past || call.direct;
    return real_call(call);
  };
  for (auto& path : paths) evict(path);
  std::size_t bytes = 0;
  runtime runtime({.threads = 1});
  detail::sync_wait_on(runtime.reactor(), runtime, read_together(paths, policy, bytes));
  return past;
}

TEST_F(DirectFaults, ARunThatWaitsForTheDiskFillsThePageCacheAtTheSecondReading) {
  std::vector<std::string> paths;
  for (int i = 0; i < 16; ++i)
    paths.push_back(dir_.write(std::to_string(i), std::string(100'000, 'x')));
  EXPECT_TRUE(read_hurried(paths, io::page_cache::automatic));
  EXPECT_FALSE(read_hurried(paths, io::page_cache::automatic));
}

// In a separate process, whose budget for the page cache is used up.
using DirectFaultsDeathTest = DirectFaults;

TEST_F(DirectFaultsDeathTest, ReadsACachedFileThroughThePageCacheWithoutABudget) {
  auto reads_past_it = [&] {
    int direct = 0;
    answer = [&](const io_operation& call) {
      direct += call.direct;
      return real_call(call);
    };
    (void)read(path_, {}, {io::page_cache::automatic});
    return direct > 0;
  };
  auto check = [&] {
    auto& use = detail::page_cache_use::of_process();
    (void)use.should_bypass(0, std::numeric_limits<std::uint64_t>::max(), false);
    (void)read(path_, {}, {io::page_cache::fill});
    bool cached = reads_past_it();
    evict(path_);
    bool evicted = reads_past_it();
    _exit(!cached && evicted ? 0 : 1);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "");
}

static task<> hold_permit(detail::open_files& files, event& end, int& started) {
  auto permit = co_await files.read_whole();
  ++started;
  co_await end;
}

static task<> hold_permits(detail::open_files& files, int& started) {
  event end;
  scope children(co_await this_context());
  for (int i = 0; i < 5; ++i) children.start(hold_permit(files, end, started));
  EXPECT_EQ(started, 2);
  end.set();
  co_await children.join();
}

TEST(OpenFiles, NoMoreReadsAreInProgressThanTheLimitAllows) {
  detail::open_files files(2);
  int started = 0;
  sync_wait(hold_permits(files, started));
  EXPECT_EQ(started, 5);
}

static task<> step_aside_and_read(detail::open_files& files) {
  auto first = co_await files.read_whole();
  auto second = co_await files.read_whole();
  EXPECT_TRUE(first.yield_slot());
  EXPECT_TRUE(first.yield_slot());
  EXPECT_FALSE(second.yield_slot());
  {
    auto third = co_await files.read_whole();
    EXPECT_FALSE(third.yield_slot());
    auto gone = std::move(first);
  }
  EXPECT_TRUE(second.yield_slot());
}

TEST(OpenFiles, YieldsAtMostHalfOfItsSlots) {
  detail::open_files files(2);
  sync_wait(step_aside_and_read(files));
}

// Opens that are answered with EMFILE when more than `most` files are open.
static auto with_descriptors(int most) {
  return [most](const io_operation& call) {
    bool opens = call.what == io_operation::kind::open;
    return opens && open_files >= most ? std::int64_t{-EMFILE} : real_call(call);
  };
}

TEST_F(Faults, ReadsWaitForTheDescriptorsOfOthers) {
  answer = with_descriptors(3);
  std::size_t bytes = 0;
  runtime runtime({.threads = 1});
  std::vector<std::string> paths(100, path_);
  detail::sync_wait_on(runtime.reactor(), runtime,
                       read_together(paths, io::page_cache::fill, bytes));
  EXPECT_EQ(bytes, paths.size() * content_.size());
}

static task<> open_files_and_read(std::string path, int files, std::size_t& bytes) {
  std::vector<io::file> held;
  for (int i = 0; i < files; ++i) held.push_back(co_await io::open(path));
  std::string into(10, '?');
  for (auto& from : held)
    bytes += co_await from.read_at(std::as_writable_bytes(std::span(into)), 0);
}

static task<> run_under(const context& execution, task<> work) {
  co_await with_context(execution, std::move(work));
}

static task<> open_together(std::string path, int tasks, int files, std::size_t& bytes) {
  std::deque<context> contexts(static_cast<std::size_t>(tasks), co_await this_context());
  scope children(contexts.front());
  for (auto& each : contexts)
    children.start(run_under(each, open_files_and_read(path, files, bytes)));
  co_await children.join();
}

TEST_F(Faults, TasksThatOpenAFileWaitForEachOther) {
  answer = with_descriptors(3);
  std::size_t bytes = 0;
  runtime runtime({.threads = 1});
  detail::sync_wait_on(runtime.reactor(), runtime, open_together(path_, 100, 1, bytes));
  EXPECT_EQ(bytes, 1000u);
}

TEST_F(Faults, TasksThatAllHoldFilesAndWaitForMoreFailRatherThanWaitForEver) {
  answer = with_descriptors(3);
  std::size_t bytes = 0;
  runtime runtime({.threads = 1});
  EXPECT_THAT(
      [&] { detail::sync_wait_on(runtime.reactor(), runtime, open_together(path_, 3, 2, bytes)); },
      ThrowsMessage<error>("open " + path_ + ": Too many open files"));
}

TEST_F(Faults, AWaitForADescriptorCanBeStopped) {
  std::stop_source stop;
  int opens = 0;
  answer = [&](const io_operation& call) {
    if (call.what != io_operation::kind::open) return never;
    if (++opens == 1) return real_call(call);
    stop.request_stop();
    return std::int64_t{-EMFILE};
  };
  std::size_t bytes = 0;
  runtime runtime({.threads = 1});
  EXPECT_THROW(detail::sync_wait_on(runtime.reactor(), runtime,
                                    read_together({path_, path_}, io::page_cache::fill, bytes),
                                    stop.get_token()),
               error);
}

TEST_F(Faults, ErrorsOfNetworkFileSystemsAreRetriedByTheStage) {
  for (int failure : {ESTALE, EIO})
    for (auto fails : {io_operation::kind::open, io_operation::kind::read}) {
      int failures = 0;
      answer = [&](const io_operation& call) {
        return call.what == fails && ++failures <= 2 ? std::int64_t{-failure} : real_call(call);
      };
      auto reads = from(std::vector{sample(path_)}) |
                   map(io::read, {.retry = {.attempts = 3, .pause = std::chrono::nanoseconds(1)}});
      runtime runtime({.threads = 1});
      std::string read;
      for (auto& item : runtime.run(reads)) read += item.data().text();
      EXPECT_EQ(read, content_) << failure;
      EXPECT_GE(failures, 3);
    }
}

TEST_F(Faults, TooManyOpenFilesIsAnError) {
  answer = [](const io_operation&) { return std::int64_t{-EMFILE}; };
  EXPECT_THAT([&] { read(path_); },
              ThrowsMessage<error>("open " + path_ + ": Too many open files"));
}

TEST_F(Faults, AReadThatNeverReturnsCanBeStopped) {
  std::stop_source stop;
  answer = [&](const io_operation& call) {
    if (call.what == io_operation::kind::open) return real_call(call);
    stop.request_stop();
    return never;
  };
  EXPECT_THAT([&] { read(path_, stop.get_token()); },
              ThrowsMessage<error>("read " + path_ + ": stopped"));
}

TEST_F(Faults, ASignalAfterAStopEndsTheRead) {
  std::stop_source stop;
  answer = [&](const io_operation& call) {
    if (call.what == io_operation::kind::open) return real_call(call);
    stop.request_stop();
    return std::int64_t{-EINTR};
  };
  EXPECT_THAT([&] { read(path_, stop.get_token()); },
              ThrowsMessage<error>("read " + path_ + ": stopped"));
}

}  // namespace lade
