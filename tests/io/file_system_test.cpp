// Files of a file system that fails, returns too little and keeps its readers waiting. It is a real
// one, served by this process with FUSE: whatever the kernel makes of its answers reaches the real
// reactors.

#define FUSE_USE_VERSION 31

#include "../support/reactors.hpp"
#include "../support/temp_dir.hpp"

#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>

#include <fcntl.h>
#include <fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade {

using testing::ThrowsMessage;
using testing_support::ReactorTest;
using testing_support::temp_dir;

// A file as the file system answers for it. Its functions are called on threads of the file system.
struct faulty_file {
  std::string content;

  // How many of `bytes` bytes from `offset` on a read returns, or -errno.
  std::function<int(std::size_t bytes, std::size_t offset)> read =
      [](std::size_t bytes, std::size_t) { return static_cast<int>(bytes); };
  std::function<int()> open = [] { return 0; };  // 0 or -errno
  bool cached = true;                            // by the kernel, which hides short reads
};

// Mounts the files in an empty directory, until it dies.
class file_system {
 public:
  file_system(std::map<std::string, faulty_file> files, const std::string& directory)
      : files_(std::move(files)), directory_(directory) {
    fuse_operations calls{};
    calls.getattr = &file_system::get_attributes;
    calls.open = &file_system::open;
    calls.read = &file_system::read;
    std::string name = "file_system_test";
    char* arguments[] = {name.data(), nullptr};
    fuse_args parsed = FUSE_ARGS_INIT(1, arguments);
    fuse_.reset(fuse_new(&parsed, &calls, sizeof calls, this));
    fuse_opt_free_args(&parsed);
    if (!fuse_ || fuse_mount(fuse_.get(), directory.c_str()) != 0)
      throw std::runtime_error("cannot mount " + directory);
    server_ = std::jthread([this] {
      int own_descriptors = 0;
      fuse_loop_mt(fuse_.get(), own_descriptors);
    });
  }
  file_system(const file_system&) = delete;
  ~file_system() {
    // Ends the loop. fuse_unmount, which calls fusermount3 for those who are not root, does so with
    // complaints about the descriptor that it closes.
    if (umount2(directory_.c_str(), 0) != 0) fuse_unmount(fuse_.get());
    server_.join();
    fuse_unmount(fuse_.get());
  }

 private:
  static const faulty_file* find(const char* path) {
    auto& self = *static_cast<file_system*>(fuse_get_context()->private_data);
    auto found = self.files_.find(path + 1);
    return found == self.files_.end() ? nullptr : &found->second;
  }

  static int get_attributes(const char* path, struct stat* into, fuse_file_info*) {
    *into = {};
    into->st_nlink = 1;
    if (std::strcmp(path, "/") == 0) {
      into->st_mode = S_IFDIR | 0755;
      return 0;
    }
    auto* file = find(path);
    if (!file) return -ENOENT;
    into->st_mode = S_IFREG | 0644;
    into->st_size = static_cast<off_t>(file->content.size());
    return 0;
  }

  static int open(const char* path, fuse_file_info* into) {
    auto* file = find(path);
    into->direct_io = !file->cached;
    return file->open();
  }

  static int read(const char* path, char* into, std::size_t bytes, off_t offset, fuse_file_info*) {
    auto* file = find(path);
    auto from = std::min(static_cast<std::size_t>(offset), file->content.size());
    int result = file->read(std::min(bytes, file->content.size() - from), from);
    if (result > 0)
      std::memcpy(into, file->content.data() + from, static_cast<std::size_t>(result));
    return result;
  }

  struct destroy {
    void operator()(fuse* made) const { fuse_destroy(made); }
  };

  std::map<std::string, faulty_file> files_;
  std::string directory_;
  std::unique_ptr<fuse, destroy> fuse_;
  std::jthread server_;
};

// Blocks calls until the test opens it.
class gate {
 public:
  void pass() {
    come_.release();
    open_.acquire();
    open_.release();
  }
  void wait_for_call() { come_.acquire(); }
  void open() { open_.release(); }

 private:
  std::counting_semaphore<1000> come_{0};
  std::counting_semaphore<1000> open_{0};
};

class FileSystem : public ReactorTest {
 protected:
  void SetUp() override {
    int fuse = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0) GTEST_SKIP() << "/dev/fuse: " << std::strerror(errno);
    close(fuse);
    ReactorTest::SetUp();
  }

  // Reads one file of a file system that has no other.
  std::string read(faulty_file file) {
    file_system files({{"file", std::move(file)}}, dir_.path());
    runtime runtime(options());
    return std::string(sync_wait(runtime, io::read_file(dir_ / "file")).text());
  }

  static std::string content(std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += std::to_string(text.size()) + ' ';
    text.resize(bytes);
    return text;
  }

  temp_dir dir_;
};

INSTANTIATE_TEST_SUITE_P(Both, FileSystem,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

TEST_P(FileSystem, FilesAreReadWhetherTheKernelCachesThemOrNot) {
  for (bool cached : {true, false})
    for (std::size_t bytes : {1u, 5000u, 200'000u, 3'000'000u})
      EXPECT_EQ(read({.content = content(bytes), .cached = cached}), content(bytes)) << bytes;
}

TEST_P(FileSystem, ShortReadsAreContinued) {
  auto seventh = [](std::size_t bytes, std::size_t) { return static_cast<int>(bytes / 7 + 1); };
  for (std::size_t bytes : {10u, 5000u, 700'000u})
    EXPECT_EQ(read({.content = content(bytes), .read = seventh, .cached = false}), content(bytes));
}

TEST_P(FileSystem, AnErrorInTheMiddleNamesTheFile) {
  auto fail = [](std::size_t bytes, std::size_t offset) {
    return offset >= 1'000'000 ? -EIO : static_cast<int>(bytes);
  };
  for (bool cached : {true, false})
    EXPECT_THAT([&] { read({.content = content(3'000'000), .read = fail, .cached = cached}); },
                ThrowsMessage<error>("read " + dir_ / "file" + ": Input/output error"));
}

TEST_P(FileSystem, AnOpenThatFailsNamesTheFile) {
  for (auto [failure, text] : {std::pair(ESTALE, "Stale file handle"), {EIO, "Input/output error"}})
    EXPECT_THAT([&] { read({.content = "text", .open = [failure] { return -failure; }}); },
                ThrowsMessage<error>("open " + dir_ / "file" + ": " + text));
}

TEST_P(FileSystem, AReadThatFailsOnceIsRepeatedByAnotherCall) {
  std::atomic<int> calls = 0;
  auto fail_once = [&](std::size_t bytes, std::size_t) {
    return calls++ == 0 ? -ESTALE : static_cast<int>(bytes);
  };
  file_system files({{"file", {.content = "text", .read = fail_once, .cached = false}}},
                    dir_.path());
  runtime runtime(options());
  EXPECT_THAT([&] { sync_wait(runtime, io::read_file(dir_ / "file")); },
              ThrowsMessage<error>("read " + dir_ / "file" + ": Stale file handle"));
  EXPECT_EQ(sync_wait(runtime, io::read_file(dir_ / "file")).text(), "text");
}

static task<> read_into(std::string path, std::string& into, std::binary_semaphore& done) {
  auto content = co_await io::read_file(std::move(path));
  into = content.text();
  done.release();
}

static task<> read_both(std::string first, std::string second, std::string* into,
                        std::binary_semaphore* done) {
  scope children(co_await this_context());
  children.start(read_into(std::move(first), into[0], done[0]));
  children.start(read_into(std::move(second), into[1], done[1]));
  co_await children.join();
}

// Reads a file that waits at the gate, and one that does not: the other is there first.
static void expect_other_goes_ahead(runtime& runtime, const temp_dir& dir, gate& slow) {
  std::string into[2];
  std::binary_semaphore done[2]{std::binary_semaphore(0), std::binary_semaphore(0)};
  std::jthread reader(
      [&] { sync_wait(runtime, read_both(dir / "slow", dir / "quick", into, done)); });
  slow.wait_for_call();
  done[1].acquire();
  EXPECT_EQ(into[1], "quick");
  EXPECT_FALSE(done[0].try_acquire());
  slow.open();
  done[0].acquire();
  EXPECT_EQ(into[0], "slow");
}

TEST_P(FileSystem, AReadThatWaitsBlocksNoOther) {
  for (bool cached : {true, false}) {
    gate slow;
    auto wait = [&](std::size_t bytes, std::size_t) {
      slow.pass();
      return static_cast<int>(bytes);
    };
    file_system files({{"slow", {.content = "slow", .read = wait, .cached = cached}},
                       {"quick", {.content = "quick"}}},
                      dir_.path());
    runtime runtime(options());
    expect_other_goes_ahead(runtime, dir_, slow);
  }
}

TEST_P(FileSystem, AnOpenThatWaitsBlocksNoOther) {
  gate slow;
  auto wait = [&] {
    slow.pass();
    return 0;
  };
  file_system files({{"slow", {.content = "slow", .open = wait}}, {"quick", {.content = "quick"}}},
                    dir_.path());
  runtime runtime(options());
  expect_other_goes_ahead(runtime, dir_, slow);
}

TEST_P(FileSystem, AStopWhileTheFileSystemIsSilentEndsTheReadWithItsAnswer) {
  gate slow;
  auto wait = [&](std::size_t bytes, std::size_t) {
    slow.pass();
    return static_cast<int>(bytes);
  };
  file_system files({{"file", {.content = content(5'000'000), .read = wait, .cached = false}}},
                    dir_.path());
  runtime runtime(options());
  std::stop_source stop;
  std::jthread stopper([&] {
    slow.wait_for_call();
    stop.request_stop();
    slow.open();
  });
  EXPECT_THAT([&] { sync_wait(runtime, io::read_file(dir_ / "file"), stop.get_token()); },
              ThrowsMessage<error>("read " + dir_ / "file" + ": stopped"));
}

}  // namespace lade
