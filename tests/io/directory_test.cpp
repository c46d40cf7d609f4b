#include "../support/temp_dir.hpp"

#include <lade/error.hpp>
#include <lade/io/directory.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace lade::io::directory_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static task<std::vector<sample>> collect(async_generator<sample> from) {
  std::vector<sample> all;
  while (auto* found = co_await from.next()) all.push_back(std::move(*found));
  co_return all;
}

// The paths of a listing relative to its root. Both ways to list must agree.
static std::vector<std::string> paths_of(const files& listing) {
  std::vector<std::string> paths;
  for (auto& found : listing.list_all())
    paths.push_back(found.key().substr(listing.root().size() + 1));
  std::vector<std::string> lazily;
  for (auto& found : sync_wait(collect(listing.list())))
    lazily.push_back(found.key().substr(listing.root().size() + 1));
  EXPECT_EQ(paths, lazily);
  return paths;
}

static std::vector<std::string> list(const temp_dir& dir, std::string_view pattern = "**") {
  return paths_of(files(dir.path().string(), pattern));
}

TEST(Files, AreListedInTheOrderOfTheirPaths) {
  temp_dir dir;
  for (auto name : {"b.jpg", "a/2.jpg", "a/10.jpg", "a.jpg", "a-b/1.jpg", "a/c/d/e.jpg", "Z.jpg"})
    dir.write(name, "");
  EXPECT_THAT(list(dir), ElementsAre("Z.jpg", "a-b/1.jpg", "a.jpg", "a/10.jpg", "a/2.jpg",
                                     "a/c/d/e.jpg", "b.jpg"));
}

TEST(Files, AreMatchedByTheWildcardsOfTheirRoot) {
  temp_dir dir;
  for (auto name : {"a/1.jpg", "a/2.png", "b/3.jpg", "4.jpg"}) dir.write(name, "");
  auto root = dir.path().string();
  files listing(root + "/[ab]/*.jpg");
  EXPECT_EQ(listing.root(), root);
  EXPECT_THAT(paths_of(listing), ElementsAre("a/1.jpg", "b/3.jpg"));
  EXPECT_THAT(labelled_files(root + "/*/*").class_names(), ElementsAre("a", "b"));
  EXPECT_THAT([&] { files(root + "/*.wav").list_all(); },
              ThrowsMessage<error>("list " + root + ": no file matches *.wav"));
}

TEST(Files, TheOrderIsThatOfTheBytesOfWholePaths) {
  temp_dir dir;
  std::mt19937 random(7);
  std::vector<std::string> expected;
  for (int i = 0; i < 300; ++i) {
    std::string path;
    for (auto depth = random() % 3; depth > 0; --depth)
      path += std::string{"ab-z\xc3"[random() % 5], "c!~"[random() % 3], '/'};
    path += "f" + std::to_string(i);
    dir.write(path, "");
    expected.push_back(path);
  }
  std::ranges::sort(expected);
  EXPECT_EQ(list(dir), expected);
}

TEST(Files, OnlyWhatMatchesIsListed) {
  temp_dir dir;
  for (auto name : {"a.jpg", "b.JPG", "x/c.jpeg", "x/d.txt", ".hidden.jpg", ".cache/e.jpg"})
    dir.write(name, "");
  EXPECT_THAT(list(dir, "**/*.{jpg,jpeg}"), ElementsAre("a.jpg", "x/c.jpeg"));
  EXPECT_THAT(list(dir, ".*"), ElementsAre(".hidden.jpg"));
  EXPECT_THAT(paths_of(files(dir.path().string(), "*.jpg", {.ignore_case = true})),
              ElementsAre("a.jpg", "b.JPG"));
}

TEST(Files, APatternThatMatchesNothingIsAnErrorThatNamesDirectoryAndPattern) {
  temp_dir dir;
  dir.write("a/1.jpg", "");
  dir.write("b/2.jpg", "");
  files wrong(dir.path().string(), "**/*.jpeg");
  auto message = "list " + dir.path().string() + ": no file matches **/*.jpeg";
  EXPECT_THAT([&] { wrong.list_all(); }, ThrowsMessage<error>(message));
  EXPECT_THAT([&] { sync_wait(collect(wrong.list())); }, ThrowsMessage<error>(message));
  labelled_files labelled(dir.path().string(), "**/*.jpeg");
  EXPECT_THAT([&] { labelled.list_all(); }, ThrowsMessage<error>(message));
  EXPECT_THAT([&] { sync_wait(collect(labelled.list())); }, ThrowsMessage<error>(message));
}

TEST(Files, AListingMayBeEmptyOnRequest) {
  temp_dir dir;
  EXPECT_THAT(paths_of(files(dir.path().string(), "**", {.may_be_empty = true})), IsEmpty());
}

TEST(Files, KeysArePathsThatCanBeOpened) {
  temp_dir dir;
  dir.write("a.jpg", "");
  auto root = dir.path().string();
  EXPECT_EQ(files(root).list_all().at(0).key(), root + "/a.jpg");
  EXPECT_EQ(files(root + "/").list_all().at(0).key(), root + "/a.jpg");
  EXPECT_EQ(files("file://" + root).list_all().at(0).key(), root + "/a.jpg");
}

TEST(Files, LinksAreFollowedButNotInCircles) {
  temp_dir dir;
  dir.write("a/1.jpg", "");
  std::filesystem::create_directory_symlink("a", dir.path() / "b");
  std::filesystem::create_directory_symlink("..", dir.path() / "a/up");
  std::filesystem::create_directory_symlink(".", dir.path() / "a/self");
  std::filesystem::create_symlink("1.jpg", dir.path() / "a/2.jpg");
  std::filesystem::create_symlink("nowhere", dir.path() / "a/3.jpg");
  std::filesystem::create_symlink("4.jpg", dir.path() / "a/4.jpg");
  EXPECT_THAT(list(dir), ElementsAre("a/1.jpg", "a/2.jpg", "a/3.jpg", "a/4.jpg", "b/1.jpg",
                                     "b/2.jpg", "b/3.jpg", "b/4.jpg"));
}

TEST(Files, WhatIsNotAFileIsSkipped) {
  temp_dir dir;
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  dir.write("file", "");
  EXPECT_THAT(list(dir), ElementsAre("file"));
}

TEST(Files, AMissingRootIsAnErrorThatNamesIt) {
  temp_dir dir;
  files absent(dir / "absent");
  auto message = "list " + dir / "absent" + ": No such file or directory";
  EXPECT_THAT([&] { absent.list_all(); }, ThrowsMessage<error>(message));
  EXPECT_THAT([&] { sync_wait(collect(absent.list())); }, ThrowsMessage<error>(message));
}

TEST(Files, ARootThatIsAFileIsAnError) {
  temp_dir dir;
  auto path = dir.write("file", "");
  EXPECT_THAT([&] { files(path).list_all(); },
              ThrowsMessage<error>("list " + path + ": Not a directory"));
}

TEST(Files, AnUnreadableDirectoryIsAnErrorThatNamesIt) {
  temp_dir dir;
  dir.write("private/file", "");
  chmod(dir.path().c_str(), 0755);
  chmod((dir / "private").c_str(), 0);
  auto user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? 65534 : user), 0);  // root reads everything
  EXPECT_THAT([&] { list(dir); },
              ThrowsMessage<error>("list " + dir / "private/" + ": Permission denied"));
  ASSERT_EQ(seteuid(user), 0);
  chmod((dir / "private").c_str(), 0700);
}

TEST(Files, UnreadableDirectoriesAreSkippedAndReportedOnRequest) {
  temp_dir dir;
  dir.write("a/file", "");
  dir.write("private/file", "");
  dir.write("z/file", "");
  chmod(dir.path().c_str(), 0755);
  chmod((dir / "private").c_str(), 0);
  auto user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? 65534 : user), 0);  // root reads everything
  std::vector<std::string> unreadable;
  files listing(dir.path().string(), "**", {.unreadable = &unreadable});
  EXPECT_THAT(paths_of(listing), ElementsAre("a/file", "z/file"));
  auto expected = "list " + dir / "private/" + ": Permission denied";
  EXPECT_THAT(unreadable, ElementsAre(expected, expected)) << "one for each way to list";
  files closed(dir / "private", "**", {.unreadable = &unreadable});
  EXPECT_THROW(closed.list_all(), error) << "the root is no part that can be left out";
  ASSERT_EQ(seteuid(user), 0);
  chmod((dir / "private").c_str(), 0700);
}

// The first file comes before the second directory has been looked at.
TEST(Files, TheFirstFlowsBeforeListingHasFinished) {
  temp_dir dir;
  dir.write("a/1", "");
  dir.write("b/1", "");
  auto first = [](files what, const temp_dir& tree) -> task<std::size_t> {
    auto found = what.list();
    std::size_t count = 0;
    while (co_await found.next())
      if (count++ == 0) tree.write("b/2", "");
    co_return count;
  };
  EXPECT_EQ(sync_wait(first(files(dir.path().string()), dir)), 3u);
}

TEST(Files, DirectoriesThatCannotMatchAreNotOpened) {
  temp_dir dir;
  dir.write("train/1", "");
  dir.write("val/1", "");
  std::filesystem::create_directory_symlink("/proc/self/fd/0", dir.path() / "test");
  EXPECT_THAT(list(dir, "train/*"), ElementsAre("train/1"));
}

TEST(LabelledFiles, LabelsAreTheDirectoriesInTheirOrder) {
  temp_dir dir;
  for (auto name : {"dog/1", "cat/deep/1", "cat-like/1", "loose", "empty/.keep"})
    dir.write(name, "");
  labelled_files listing(dir.path().string());
  EXPECT_THAT(listing.class_names(), ElementsAre("cat", "cat-like", "dog", "empty"));
  std::vector<std::int64_t> labels;
  for (auto& found : listing.list_all()) labels.push_back(found.label());
  EXPECT_THAT(labels, ElementsAre(1, 0, 2, sample::no_label));
  std::vector<std::int64_t> lazily;
  for (auto& found : sync_wait(collect(listing.list()))) lazily.push_back(found.label());
  EXPECT_EQ(labels, lazily);
}

}  // namespace lade::io::directory_test
