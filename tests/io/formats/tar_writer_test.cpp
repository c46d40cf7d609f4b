#include <lade/error.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/io/formats/tar_writer.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "tar_bytes.hpp"

namespace lade::io::tar_writer_test {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static task<std::vector<std::pair<std::string, std::string>>> members_of(std::string path) {
  std::vector<std::pair<std::string, std::string>> all;
  auto members = tar_members(test::chunks_of(content_of(path), 1 << 20), path);
  while (auto* member = co_await members.next())
    all.emplace_back(member->name(), member->content().text());
  co_return all;
}

static auto files_in(const temp_dir& dir) {
  return std::distance(std::filesystem::directory_iterator(dir.path()), {});
}

TEST(TarWriter, WhatIsWrittenIsReadWhateverTheNames) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  temp_dir dir;
  std::vector<std::pair<std::string, std::string>> expected;
  std::uint64_t bytes = 1024;
  tar_writer writer(dir / "a.tar", {.modified = 1'700'000'000});
  for (int i = 0; i < 300; ++i) {
    std::string name(1 + random() % 300, static_cast<char>('a' + random() % 26));
    for (auto slashes = random() % 4; slashes > 0; --slashes)
      name.insert(random() % name.size(), "/");
    name += "\xc3\xa4" + std::to_string(i);
    std::string content(random() % 2000, static_cast<char>(random()));
    writer.add(name, content);
    bytes += tar_bytes_of(name, content.size());
    EXPECT_EQ(writer.bytes(), bytes);
    expected.emplace_back(name, content);
  }
  writer.finish();
  EXPECT_EQ(std::filesystem::file_size(dir / "a.tar"), bytes);
  EXPECT_EQ(sync_wait(members_of(dir / "a.tar")), expected);
}

TEST(TarWriter, WritesTheSameBytesForTheSameMembers) {
  temp_dir dir;
  for (auto name : {"a.tar", "b.tar"}) {
    tar_writer writer(dir / name);
    writer.add("x", "content");
    writer.add(std::string(200, 'y'), "");
    writer.finish();
  }
  EXPECT_EQ(content_of(dir / "a.tar"), content_of(dir / "b.tar"));
}

TEST(TarWriter, AFileAppearsWhenItIsFinished) {
  temp_dir dir;
  auto path = dir.write("a.tar", "before");
  {
    tar_writer writer(path);
    writer.add("x", "content");
    EXPECT_EQ(files_in(dir), 2);
  }
  EXPECT_EQ(files_in(dir), 1);
  EXPECT_EQ(content_of(path), "before");
  tar_writer writer(path);
  tar_writer moved(std::move(writer));
  moved.finish();
  EXPECT_EQ(files_in(dir), 1);
  EXPECT_EQ(content_of(path), test::tar_end());
}

// Writes in a child process, which is killed before it has finished.
static void write_and_be_killed(const std::string& path) {
  auto child = fork();
  if (child == 0) {
    tar_writer writer(path);
    writer.add("x", "content");
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(TarWriter, WhatAKilledWriterHasLeftIsRemovedByTheNextOfThatName) {
  temp_dir dir;
  write_and_be_killed(dir / "a.tar");
  write_and_be_killed(dir / "a.tar.gz");
  ASSERT_EQ(files_in(dir), 2);
  tar_writer writer(dir / "a.tar");
  writer.finish();
  EXPECT_EQ(files_in(dir), 2);  // "a.tar", and what is left of the other name
  tar_writer other(dir / "a.tar.gz");
  other.finish();
  EXPECT_EQ(files_in(dir), 2);
  EXPECT_EQ(content_of(dir / "a.tar"), test::tar_end());
}

TEST(TarWriter, WritersOfOneNameLeaveEachOtherAlone) {
  temp_dir dir;
  tar_writer first(dir / "a.tar");
  first.add("x", "first");
  {
    tar_writer second(dir / "a.tar");
    tar_writer third(dir / "a.tar");
    EXPECT_EQ(files_in(dir), 3);
    second.finish();
    EXPECT_EQ(content_of(dir / "a.tar"), test::tar_end());
  }
  first.finish();
  EXPECT_EQ(files_in(dir), 1);
  EXPECT_EQ(sync_wait(members_of(dir / "a.tar")).at(0).second, "first");
}

TEST(TarWriter, FilesOfOtherMachinesAreRemovedOnceTheyAreOld) {
  temp_dir dir;
  auto young = dir.write("a.tar.tmp-0123-1-2-3", "");
  auto old = dir.write("a.tar.tmp-0123-4-5-6", "");
  auto unrelated = dir.write("a.tar.tmp-of-yesterday", "");
  std::filesystem::create_directory(dir / "a.tar.tmp-7");
  for (auto& path : {old, unrelated, std::string(dir / "a.tar.tmp-7")})
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  tar_writer writer(dir / "a.tar");
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(unrelated));
  EXPECT_TRUE(std::filesystem::exists(dir / "a.tar.tmp-7"));
}

TEST(TarWriter, ErrorsNameTheArchive) {
  temp_dir dir;
  EXPECT_THAT([&] { tar_writer writer(dir / "absent/a.tar"); },
              ThrowsMessage<error>(HasSubstr("absent/a.tar: No such file or directory")));
  EXPECT_THROW(tar_writer(dir / "a.tar", {.modified = -1}), error);
  tar_writer writer(dir / "a.tar");
  for (auto name : {std::string(), std::string("d/"), std::string("a\0b", 3)})
    EXPECT_THAT([&] { writer.add(name, ""); }, ThrowsMessage<error>(HasSubstr("no file can have")));
  writer.finish();
  EXPECT_THAT([&] { writer.add("a", ""); }, ThrowsMessage<error>(HasSubstr("it is finished")));
  EXPECT_THAT([&] { writer.finish(); }, ThrowsMessage<error>(HasSubstr("it is finished")));
}

}  // namespace lade::io::tar_writer_test
