#include "../../io/cached_calls.hpp"

#include "../support/reactors.hpp"
#include "../support/seed.hpp"
#include "../support/temp_dir.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/detail/memory/demand.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <semaphore>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade::file_test {

using namespace testing_support;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

// A content in which every part states its offset.
static std::string content_of(std::size_t bytes) {
  std::string content;
  content.reserve(bytes + 10);
  while (content.size() < bytes) content += std::to_string(content.size()) + ' ';
  content.resize(bytes);
  return content;
}

static auto open_descriptors() {
  return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"));
}

class File : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, File,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(File, AWholeFileIsReadWhateverItsSize) {
  temp_dir dir;
  runtime runtime(options());
  for (std::size_t bytes : {0u, 1u, 4095u, 4096u, 110'000u, 5'000'000u}) {
    auto content = content_of(bytes);
    auto path = dir.write("file", content);
    EXPECT_EQ(sync_wait(runtime, io::read_file(path)).text(), content) << bytes;
  }
}

TEST_P(File, EveryPageCachePolicyReadsTheSameBytes) {
  temp_dir dir;
  runtime runtime(options());
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (std::size_t bytes : {1u, 4095u, 4096u, 4097u, 110'000u, 3'000'000u}) {
    auto content = content_of(bytes + random() % 1000);
    auto path = dir.write("file", content);
    for (auto policy : {io::page_cache::bypass, io::page_cache::fill, io::page_cache::automatic}) {
      evict(path);
      EXPECT_EQ(sync_wait(runtime, io::read_file(path, {policy})).text(), content);
      EXPECT_EQ(sync_wait(runtime, io::read.with({policy})(sample(path))).data().text(), content);
    }
  }
}

TEST_P(File, ASampleIsReadByItsKey) {
  temp_dir dir;
  runtime runtime(options());
  sample from(dir.write("cat/1.jpg", "meow"), 3);
  auto read = sync_wait(runtime, io::read(from));
  EXPECT_EQ(read.key(), from.key());
  EXPECT_EQ(read.label(), 3);
  EXPECT_EQ(read.data().text(), "meow");
}

static task<std::string> read_part(std::string path, std::uint64_t offset, std::size_t bytes) {
  auto from = co_await io::open(std::move(path));
  std::string into(bytes, '?');
  auto done = co_await from.read_at(std::as_writable_bytes(std::span(into)), offset);
  into.resize(done);
  co_return into;
}

TEST_P(File, PartsAreReadAndEndWithTheFile) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("file", "0123456789");
  EXPECT_EQ(sync_wait(runtime, read_part(path, 3, 4)), "3456");
  EXPECT_EQ(sync_wait(runtime, read_part(path, 8, 4)), "89");
  EXPECT_EQ(sync_wait(runtime, read_part(path, 10, 4)), "");
  EXPECT_EQ(sync_wait(runtime, read_part(path, 1'000'000'000'000, 4)), "");
}

// Threads other than the reactor's copy what the page cache has by themselves, and ask the reactor
// for the rest.
TEST_P(File, FilesThatThePageCacheHasInPartAreReadTheSame) {
  temp_dir dir;
  runtime runtime(options());
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 20; ++i) {
    auto content = content_of(random() % 4'000'000 + 1);
    auto path = dir.write("file", content);
    evict(path);
    for (std::size_t j = 0; j < 3; ++j) {  // the first brings some of it into the cache
      auto offset = random() % content.size(), bytes = random() % (j * content.size() + 100'000);
      EXPECT_EQ(sync_wait(runtime, read_part(path, offset, bytes)), content.substr(offset, bytes));
    }
    EXPECT_EQ(sync_wait(runtime, io::read_file(path)).text(), content);
  }
}

static context outside_of(runtime& where) {
  context here;
  here.runtime = &where;
  return here;
}

static bool is_on_disk(const std::string& path) {
  struct statx found{};
  return statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &found) == 0 && found.stx_dev_major != 0;
}

TEST(CachedCalls, OpenAndReadWhatTheKernelHas) {
  temp_dir dir;
  runtime runtime;
  auto content = content_of(10'000);
  auto path = dir.write("file", content);
  if (!is_on_disk(path)) GTEST_SKIP() << "no file system of a disk";
  auto here = outside_of(runtime);
  int fd = detail::open_cached(here, AT_FDCWD, path);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY);
  EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  std::string into(20'000, '\0');
  auto bytes = detail::read_cached(here, fd, std::as_writable_bytes(std::span(into)), 10, path);
  EXPECT_EQ(into.substr(0, bytes), content.substr(10));
  close(fd);
}

// Else no stop would end that.
TEST(CachedCalls, OpenNothingThatMayWait) {
  temp_dir dir;
  runtime runtime;
  auto here = outside_of(runtime);
  auto fifo = dir / "fifo", leased = dir.write("leased", "content");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (auto& path : {fifo, dir / "absent", std::string(dir / "."), std::string("/proc/version")})
    EXPECT_LT(detail::open_cached(here, AT_FDCWD, path), 0) << path;
  int fd = ::open(leased.c_str(), O_RDWR | O_CLOEXEC);
  auto before = std::signal(SIGIO, SIG_IGN);  // the signal that notifies the holder of a lease
  if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
    EXPECT_LT(detail::open_cached(here, AT_FDCWD, leased), 0);
    fcntl(fd, F_SETLEASE, F_UNLCK);
  }
  std::signal(SIGIO, before);
  close(fd);
}

TEST(CachedCalls, AreNotMadeAfterAStop) {
  temp_dir dir;
  runtime runtime;
  std::stop_source source;
  auto here = outside_of(runtime);
  here.stop = source.get_token();
  source.request_stop();
  EXPECT_LT(detail::open_cached(here, AT_FDCWD, dir.write("file", "content")), 0);
}

static task<std::vector<std::string>> texts_of(async_generator<buffer> chunks) {
  std::vector<std::string> texts;
  while (auto* chunk = co_await chunks.next()) texts.emplace_back(chunk->text());
  co_return texts;
}

TEST_P(File, StreamsInChunks) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("file", "0123456789");
  EXPECT_THAT(sync_wait(runtime, texts_of(io::stream(path, {.offset = 1, .chunk_bytes = 4}))),
              testing::ElementsAre("1234", "5678", "9"));
  EXPECT_THAT(sync_wait(runtime, texts_of(io::stream(dir.write("empty", "")))), testing::IsEmpty());
}

TEST_P(File, AStreamThatCannotBeNamesTheFile) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("file", "0123456789");
  EXPECT_THAT([&] { (void)io::stream(path, {.chunk_bytes = 0}); },
              ThrowsMessage<error>(HasSubstr("file: chunk_bytes")));
  EXPECT_THAT([&] { sync_wait(runtime, texts_of(io::stream(path, {.offset = 11}))); },
              ThrowsMessage<error>(HasSubstr("offset 11 is behind its end at 10")));
  auto absent = texts_of(io::stream(path + ".absent"));
  EXPECT_THAT([&] { sync_wait(runtime, std::move(absent)); },
              ThrowsMessage<error>(HasSubstr("open " + path + ".absent")));
}

static task<std::string> read_as_any_reader(std::string path) {
  auto from = co_await io::open_reader(std::move(path));
  auto part = co_await from->read_at(2, 3);
  co_return std::string(part.text()) + " of " + std::to_string(from->size());
}

TEST_P(File, IsAByteReader) {
  temp_dir dir;
  runtime runtime(options());
  EXPECT_EQ(sync_wait(runtime, read_as_any_reader(dir.write("file", "0123456789"))), "234 of 10");
}

// Reads a file into the same memory again and again, and keeps it out of the page cache: fresh
// memory takes longer than reading. Returns what is not zero at the ends of each part.
static task<std::string> read_what_is_written(std::string path) {
  auto from = co_await io::open(path);
  buffer part(std::size_t{64} << 20);
  std::string written;
  for (std::uint64_t offset = 0;; offset += part.size()) {
    auto got = co_await from.read_at(part.bytes(), offset);
    auto ends =
        std::string(part.text().substr(0, 10)) + std::string(part.text().substr(got - 10, 10));
    std::ranges::copy_if(ends, std::back_inserter(written), [](char c) { return c != 0; });
    if (got < part.size()) co_return written;
    evict(path);
  }
}

// -1 stands for the position of the descriptor, to io_uring.
TEST_P(File, AnOffsetThatNoFileHasIsRefused) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("file", "0123456789");
  constexpr auto last = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (auto offset : {~std::uint64_t{0}, last + 1, last, last - 3}) {
    EXPECT_THAT(
        [&] { sync_wait(runtime, read_part(path, offset, 4)); },
        ThrowsMessage<error>(StartsWith("read " + path + ": offset is " + std::to_string(offset))));
  }
  EXPECT_EQ(sync_wait(runtime, read_part(path, last - 4, 4)), "");
}

TEST_P(File, AFileOfSeveralGigabytesIsReadToItsEnd) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("sparse", "begin, ");
  constexpr std::uint64_t bytes = (std::uint64_t{4} << 30) + 100;
  std::filesystem::resize_file(path, bytes);
  std::fstream file(path, std::ios::in | std::ios::out);
  file.seekp(std::uint64_t{3} << 30) << "middle, ";
  file.seekp(bytes - 3) << "end";
  file.close();
  EXPECT_EQ(sync_wait(runtime, read_what_is_written(path)), "begin, middle, end");
}

TEST_P(File, FilesThatDoNotKnowTheirSizeAreReadToTheirEnd) {
  runtime runtime(options());
  auto status = sync_wait(runtime, io::read_file("/proc/self/status"));
  EXPECT_THAT(std::string(status.text()), StartsWith("Name:"));
  EXPECT_TRUE(sync_wait(runtime, io::read_file("/dev/null")).empty());
}

TEST_P(File, AFifoIsReadUntilItsWriterCloses) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir / "fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  auto content = content_of(300'000);
  std::jthread writer([&] { std::ofstream(path) << content; });
  EXPECT_EQ(sync_wait(runtime, io::read_file(path)).text(), content);
}

// Neither fails: what is read is between the shortest and the longest that the file has been.
TEST_P(File, AFileMayGrowAndShrinkWhileItIsRead) {
  temp_dir dir;
  runtime runtime(options());
  auto content = content_of(200'000);
  auto path = dir.write("file", content);
  std::jthread changer([&](const std::stop_token& end) {
    for (std::size_t i = 0; !end.stop_requested(); ++i)
      EXPECT_EQ(truncate(path.c_str(), i % 2 ? 200'000 : 100), 0);
  });
  for (int i = 0; i < 300; ++i) {
    auto got = sync_wait(runtime, io::read_file(path));
    ASSERT_GE(got.size(), 100u);
    ASSERT_LE(got.size(), 200'000u);
    ASSERT_EQ(got.text().substr(0, 100), content.substr(0, 100));
  }
}

static task<> read_text(std::string path, std::string& text, std::atomic<bool>& is_read) {
  auto content = co_await io::read_file(std::move(path));
  text = content.text();
  is_read = true;
}

static task<> join(scope& children) { co_await children.join(); }

// Each time that the read waits for the file's memory, a longer file takes the place of that one.
TEST_P(File, AFileThatIsReplacedWhileMemoryIsWaitedForIsReadToItsEnd) {
  constexpr std::size_t page = 4096;
  temp_dir dir;
  auto content = content_of(page);
  auto path = dir.write("file", content);
  runtime runtime(options());
  buffer_pool memory(8 * page);
  std::vector<buffer> others;
  while (others.size() < 8) others.push_back(memory.allocate_now(page));
  detail::memory_claim claim(std::make_shared<detail::demand>());
  scope children(
      {.runtime = &runtime, .home = &runtime.pool(), .memory = &memory, .claim = &claim});
  std::string text;
  std::atomic<bool> is_read = false;
  children.start(read_text(path, text, is_read));
  for (std::size_t wait = 1; !others.empty(); ++wait) {
    while (memory.stats().waits < wait && !is_read) std::this_thread::yield();
    if (is_read) break;
    content = content_of((wait + 1) * page);
    std::filesystem::rename(dir.write("longer", content), path);
    others.pop_back();  // enough for the file that was there before
  }
  EXPECT_FALSE(others.empty());
  others.clear();
  sync_wait(join(children));
  EXPECT_TRUE(text == content) << text.size() << " bytes of " << content.size();
  EXPECT_EQ(memory.stats().used_bytes, 0u);
}

TEST_P(File, ErrorsNameTheFile) {
  temp_dir dir;
  runtime runtime(options());
  auto absent = dir / "absent.jpg";
  EXPECT_THAT([&] { sync_wait(runtime, io::read_file(absent)); },
              ThrowsMessage<error>("open " + absent + ": No such file or directory"));
  EXPECT_THAT([&] { sync_wait(runtime, io::read(sample(absent))); },
              ThrowsMessage<error>("open " + absent + ": No such file or directory"));
  EXPECT_THAT([&] { sync_wait(runtime, io::stat(absent)); },
              ThrowsMessage<error>("stat " + absent + ": No such file or directory"));
  EXPECT_THAT([&] { sync_wait(runtime, io::read_file(dir.path().string())); },
              ThrowsMessage<error>("read " + dir.path().string() + ": Is a directory"));
  EXPECT_THAT([&] { sync_wait(runtime, read_part("/proc/self/mem", 0, 4)); },
              ThrowsMessage<error>("read /proc/self/mem: Input/output error"));
}

TEST_P(File, TryOpenReturnsNothingForAnAbsentFile) {
  temp_dir dir;
  runtime runtime(options());
  EXPECT_FALSE(sync_wait(runtime, io::try_open(dir / "absent")));
  auto path = dir.write("present", "text");
  EXPECT_FALSE(sync_wait(runtime, io::try_open(path + "/below")));
  auto present = sync_wait(runtime, io::try_open(path));
  ASSERT_TRUE(present);
  EXPECT_EQ(present->size(), 4u);
  EXPECT_EQ(present->path(), path);
}

TEST_P(File, StatReturnsTypeSizeAndTime) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("file", "text");
  auto found = sync_wait(runtime, io::stat(path));
  EXPECT_EQ(found.type, io::file_info::kind::regular);
  EXPECT_EQ(found.size_bytes, 4u);
  auto age = std::chrono::system_clock::now() - found.modified;
  EXPECT_LT(std::chrono::abs(age), std::chrono::minutes(1));
  auto root = sync_wait(runtime, io::stat(dir.path().string()));
  EXPECT_EQ(root.type, io::file_info::kind::directory);
}

static task<> read_many(std::vector<sample>& samples, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) {
    auto& from = samples[i % samples.size()];
    auto got = co_await io::read(from);
    if (got.data().text() != content_of(got.data().size())) throw std::runtime_error(from.key());
  }
}

static task<> read_in_parallel(std::vector<sample>& samples, buffer_pool& memory) {
  context execution = co_await this_context();
  execution.memory = &memory;
  scope children(execution);
  for (int i = 0; i < 64; ++i) children.start(read_many(samples, 50));
  co_await children.join();
}

TEST_P(File, ManyReadersReleaseAllMemoryAndDescriptors) {
  temp_dir dir;
  auto one_reactor = options();
  one_reactor.reactors = 1;  // each further one has more descriptors
  runtime runtime(one_reactor);
  std::vector<sample> samples;
  for (std::size_t i = 0; i < 30; ++i)
    samples.emplace_back(dir.write("file" + std::to_string(i), content_of(i * 1000)));
  buffer_pool memory;
  auto before = open_descriptors();
  sync_wait(runtime, read_in_parallel(samples, memory));
  EXPECT_EQ(memory.stats().used_bytes, 0u);
  run_on_reactor(runtime, [] {});
  EXPECT_LE(open_descriptors(), before + 1);
}

TEST_P(File, SeveralReactorsShareTheReaders) {
  temp_dir dir;
  auto several = options();
  several.reactors = 3;
  runtime runtime(several);
  std::vector<sample> samples;
  for (std::size_t i = 0; i < 30; ++i)
    samples.emplace_back(dir.write("file" + std::to_string(i), content_of(i * 1000)));
  buffer_pool memory;
  sync_wait(runtime, read_in_parallel(samples, memory));
  EXPECT_EQ(memory.stats().used_bytes, 0u);
}

TEST_P(File, ReadersCanBeStopped) {
  temp_dir dir;
  runtime runtime(options());
  std::vector<sample> samples{sample(dir.write("file", content_of(1'000'000)))};
  for (int i = 0; i < 50; ++i) {
    buffer_pool memory;
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    try {
      sync_wait(runtime, read_in_parallel(samples, memory), stop.get_token());
    } catch (const error& stopped) {
      EXPECT_EQ(stopped.code(), errc::stopped);
    }
    EXPECT_EQ(memory.stats().used_bytes, 0u);
  }
}

TEST_P(File, AStoppedReadSaysSo) {
  temp_dir dir;
  auto path = dir.write("file", "text");
  runtime runtime(options());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT([&] { sync_wait(runtime, io::read_file(path), stop.get_token()); },
              ThrowsMessage<error>("open " + path + ": stopped"));
}

TEST_P(File, TooManyOpenFilesIsOneClearError) {
  temp_dir dir;
  auto path = dir.write("file", "text");
  runtime runtime(options());
  auto failure = [&](const std::string& which) -> std::string {
    try {
      sync_wait(runtime, io::read_file(which));
    } catch (const error& thrown) {
      return thrown.what();
    }
    return "none";
  };
  // Sanitizers need descriptors, too, for code that they have not seen yet.
  ASSERT_EQ(failure(path), "none");
  ASSERT_NE(failure(dir / "absent"), "none");
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit low{64, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  std::vector<int> used;
  for (int fd = dup(0); fd >= 0; fd = dup(0)) used.push_back(fd);
  auto message = failure(path);
  for (int fd : used) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(message, "open " + path + ": Too many open files");
  EXPECT_EQ(failure(path), "none");
}

// Counts the open descriptors in every turn of a reactor.
class descriptor_watch {
 public:
  descriptor_watch(runtime& watched, int limit) : reactor_(watched.reactor()), limit_(limit) {
    post();
  }
  descriptor_watch(const descriptor_watch&) = delete;

  // How many there were at most. Once.
  int most() {
    over_ = true;
    ended_.acquire();
    return most_;
  }

 private:
  void post() {
    reactor_.post(
        {[](void* self) noexcept { static_cast<descriptor_watch*>(self)->look(); }, this});
  }
  void look() {
    int count = 0;
    for (int fd = 0; fd < limit_; ++fd) count += fcntl(fd, F_GETFD) >= 0;
    most_ = std::max(most_, count);
    if (over_)
      ended_.release();
    else
      post();
  }

  detail::reactor& reactor_;
  const int limit_;
  int most_ = 0;
  std::atomic<bool> over_ = false;
  std::binary_semaphore ended_{0};
};

static task<> add_size(std::string path, std::size_t& bytes) {
  auto content = co_await io::read_file(std::move(path));
  bytes += content.size();
}

static task<> read_together(const std::vector<std::string>& paths, std::size_t& bytes) {
  scope children(co_await this_context());
  for (auto& path : paths) children.start(add_size(path, bytes));
  co_await children.join();
}

// In a process that may have so many descriptors: whether all files are read, with some to spare.
static bool reads_below_the_limit(const runtime_options& options, int limit) {
  rlimit low{static_cast<rlim_t>(limit), static_cast<rlim_t>(limit)};
  setrlimit(RLIMIT_NOFILE, &low);
  temp_dir dir;
  std::vector<std::string> paths;
  std::size_t expected = 0;
  for (std::size_t i = 0; i < 1000; expected += i++)
    paths.push_back(dir.write(std::to_string(i), content_of(i)));
  runtime runtime(options);
  descriptor_watch watch(runtime, limit);
  std::size_t bytes = 0;
  detail::sync_wait_on(runtime.reactor(), runtime, read_together(paths, bytes));
  auto most = watch.most();
  std::fprintf(stderr, "%zu bytes of %zu, %d descriptors\n", bytes, expected, most);
  return bytes == expected && most < limit;
}

using FileDeathTest = File;
INSTANTIATE_TEST_SUITE_P(Both, FileDeathTest,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(FileDeathTest, ManyReadsLeaveDescriptorsToOthers) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // the limit is read once a process
  EXPECT_EXIT(_exit(reads_below_the_limit(options(1), 64) ? 0 : 1), testing::ExitedWithCode(0),
              "499500 bytes of 499500");
}

TEST(FileAlone, OutsideOfARuntimeThereIsAnError) {
  EXPECT_THAT([] { sync_wait(io::read_file("/dev/null")); },
              ThrowsMessage<error>(HasSubstr("awaited outside of a runtime")));
}

}  // namespace lade::file_test
