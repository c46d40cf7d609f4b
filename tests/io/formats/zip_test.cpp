#include "../../support/counted_store.hpp"
#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "oracle.hpp"
#include "zip_writer.hpp"

#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/formats/zip.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lade::io::zip_test {

using namespace lade::test;
using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

static zip_archive open_text(const buffer& file, zip_options options = {}) {
  return sync_wait(open_zip(std::make_shared<memory_reader>(file, "a.zip"), options));
}

static std::string read_text(const zip_archive& archive, const std::string& name) {
  return std::string(sync_wait(archive.read(name)).text());
}

static std::string read_text(const std::vector<zip_entry>& entries, const std::string& name) {
  return read_text(open_text(buffer_of(zip_of(entries))), name);
}

static std::error_code code_of(const std::vector<zip_entry>& entries) {
  try {
    read_text(entries, entries.front().name);
  } catch (const error& refused) {
    return refused.code();
  }
  return {};
}

TEST(Zip, AStoredMemberIsAViewOfTheArchive) {
  auto file = buffer_of(zip_of({{"a", "text"}}));
  auto content = sync_wait(open_text(file).read("a"));
  EXPECT_EQ(content.text(), "text");
  EXPECT_EQ(content.data(), file.data() + 31);
}

TEST(Zip, ADeflatedMemberIsInflated) {
  std::string text(100'000, 'x');
  EXPECT_EQ(read_text({{"a", text, true}, {"b", "", true}}, "a"), text);
  EXPECT_EQ(read_text({{"a", text, true}, {"b", "", true}}, "b"), "");
}

TEST(Zip, SeveralMembersAreReadAtOnceWhereTheyAreNeighbours) {
  runtime runtime({.threads = 2});
  auto remote = std::make_shared<counted_store>();
  remote->opens_ranges = true;
  const std::string large(200'000, 'l');
  remote->put("counted://a.zip", zip_of({{"a", "1"}, {"b", "22", true}, {"l", large}, {"c", "3"}}));
  mount("counted://", remote);
  auto archive = sync_wait(runtime, open_zip("counted://a.zip"));
  auto before = remote->count();
  std::vector wanted{*archive.find("c"), *archive.find("b"), *archive.find("a")};
  auto contents = sync_wait(runtime, archive.read(wanted));
  EXPECT_EQ(remote->count(), before + 2);  // nothing of what is between them
  ASSERT_EQ(contents.size(), 3u);
  EXPECT_EQ(contents[0].text(), "3");
  EXPECT_EQ(contents[1].text(), "22");
  EXPECT_EQ(contents[2].text(), "1");
  unmount("counted://");
}

TEST(Zip, OfSeveralMembersADamagedOneIsNamed) {
  auto file = zip_of({{"a", "text"}, {"b", "more"}});
  file[file.find("more")] ^= 1;
  auto archive = open_text(buffer_of(file));
  std::vector both(archive.members().begin(), archive.members().end());
  runtime runtime({.threads = 1});
  EXPECT_THAT([&] { (void)sync_wait(runtime, archive.read(both)); },
              ThrowsMessage<error>("read a.zip/b: its CRC-32 is wrong"));
}

TEST(Zip, MembersAreListedInTheOrderOfTheDirectory) {
  auto archive = open_text(buffer_of(zip_of({{"z", "1"}, {"d/", ""}, {"a", "22", true}})));
  ASSERT_EQ(archive.members().size(), 3u);
  EXPECT_EQ(archive.name(), "a.zip");
  EXPECT_EQ(archive.members()[0].name(), "z");
  EXPECT_TRUE(archive.members()[1].is_directory());
  auto* found = archive.find("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 2u);
  EXPECT_EQ(found->compressed_size(), 4u);
  EXPECT_EQ(found->method(), zip_method::deflated);
  EXPECT_FALSE(archive.find("d"));
  EXPECT_FALSE(archive.find("zz"));
  EXPECT_EQ(archive.samples().size(), 2u);
}

TEST(Zip, OfMembersOfOneNameTheLastIsFound) {
  EXPECT_EQ(read_text({{"a", "first"}, {"a", "last"}}, "a"), "last");
}

TEST(Zip, AnEmptyArchiveHasNoMembers) {
  EXPECT_TRUE(open_text(buffer_of(zip_of({}))).members().empty());
}

TEST(Zip, AMemberThatIsAbsentIsNamed) {
  EXPECT_THAT([] { read_text({{"a", ""}}, "b"); },
              ThrowsMessage<error>("read a.zip/b: the archive has no such member"));
}

TEST(Zip, WhatIsInFrontOfAnArchiveAndInItsCommentIsPassedOver) {
  auto file = "#!/bin/sh\n" + zip_of({{"a", "text"}}, "PK\5\6 is how a record begins");
  EXPECT_EQ(read_text(open_text(buffer_of(file)), "a"), "text");
}

TEST(Zip, WhatIsNoArchiveIsRefused) {
  auto refusal = [](const std::string& file, const std::string& why) {
    EXPECT_THAT([&] { open_text(buffer_of(file)); },
                ThrowsMessage<error>(AllOf(HasSubstr("read a.zip: "), HasSubstr(why))));
  };
  auto good = zip_of({{"a", "text"}});
  auto end = good.size() - 22;
  refusal("", "no end of a central directory");
  refusal(good.substr(0, good.size() - 1), "no end of a central directory");
  refusal(good + "!", "no end of a central directory");
  auto changed = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
    auto copy = good;
    return copy.replace(at, bytes, little(value, bytes));
  };
  refusal(changed(end + 4, 1, 2), "several disks");
  refusal(changed(end + 8, 0x00020002, 4), "claims 2 members");
  refusal(changed(end + 8, 0, 4), "bytes after its members");
  refusal(changed(end + 12, 1000, 4), "of 1000 bytes");
  refusal(changed(end + 16, 1000, 4), "at 1000 is not before its end");
  refusal(changed(end - 47, 0, 1), "no member where one must be (at byte 35)");
  refusal(changed(end - 47 + 28, 1000, 2), "cut off");
  refusal(changed(end - 47 + 24, 0xffffffff, 4), "extra fields of a");
}

TEST(Zip, MembersThatShareBytesAreRefused) {
  std::vector<zip_entry> entries{{"a", "text"}, {"b", "text"}};
  entries[1].moved = -35;
  EXPECT_THAT([&] { read_text(entries, "a"); },
              ThrowsMessage<error>(AllOf(HasSubstr("read a.zip: a of 4 bytes at 0 overlaps b"))));
  entries[1].moved = 10;
  EXPECT_THAT([&] { read_text(entries, "a"); },
              ThrowsMessage<error>(HasSubstr("overlaps the central directory")));
}

TEST(Zip, ALocalHeaderThatDiffersIsRefused) {
  auto refusal = [](zip_entry entry, std::size_t at, char value, const std::string& why) {
    auto file = zip_of({std::move(entry)});
    file[at] = value;
    EXPECT_THAT([&] { read_text(open_text(buffer_of(file)), "a"); },
                ThrowsMessage<error>(AllOf(HasSubstr("read a.zip/a: "), HasSubstr(why))));
  };
  const zip_entry good("a", "text");
  refusal(good, 0, 'Q', "no member at its offset");
  refusal(good, 6, 1, "differs");   // encrypted
  refusal(good, 8, 8, "differs");   // method
  refusal(good, 14, 1, "differs");  // CRC-32
  refusal(good, 18, 1, "differs");  // compressed size
  refusal(good, 22, 1, "differs");  // size
  refusal(good, 26, 0, "another name");
  refusal(good, 29, 1, "leaves no space");
  refusal(good, 30, 'b', "another name");
  auto extra = good;
  extra.extra = std::string("\1\0\xff\0", 4);
  refusal(extra, 22, 4, "extra fields of its local header are damaged");
}

TEST(Zip, WrongDataAreRefused) {
  EXPECT_THAT(
      [] {
        auto file = zip_of({{"a", "text"}});
        file[31] = 'T';
        read_text(open_text(buffer_of(file)), "a");
      },
      ThrowsMessage<error>("read a.zip/a: its CRC-32 is wrong"));
  zip_entry damaged("a", std::string(1000, 'x'), true);
  damaged.data[0] = '\7';  // a block of the type that does not exist
  EXPECT_THAT([&] { read_text({damaged}, "a"); }, ThrowsMessage<error>(HasSubstr("damaged")));
  zip_entry longer("a", std::string(1000, 'x'), true);
  longer.size = 1001;
  EXPECT_EQ(code_of({longer}), errc::invalid_data);
  longer.size = 999;
  EXPECT_EQ(code_of({longer}), errc::invalid_data);
  zip_entry extra("a", std::string(1000, 'x'), true);
  extra.data += '\0';
  EXPECT_EQ(code_of({extra}), errc::invalid_data);
  zip_entry stored("a", "text");
  stored.size = 5;
  EXPECT_THAT([&] { read_text({stored}, "a"); }, ThrowsMessage<error>(HasSubstr("two sizes")));
}

TEST(Zip, UnsupportedMembersAreNamedWhenTheyAreRead) {
  zip_entry encrypted("a", "text");
  encrypted.flags = 1;
  EXPECT_TRUE(open_text(buffer_of(zip_of({encrypted}))).members()[0].is_encrypted());
  EXPECT_THAT([&] { read_text({encrypted}, "a"); },
              ThrowsMessage<error>("read a.zip/a: encryption is not supported"));
  zip_entry other("a", "text");
  other.method = 93;
  EXPECT_THAT([&] { read_text({other}, "a"); },
              ThrowsMessage<error>("read a.zip/a: compression method 93 is not supported"));
}

TEST(Zip, ABombIsRefusedBeforeMemoryIsAllocated) {
  auto file = buffer_of(zip_of({{"a", std::string(100'000, 'x'), true}}));
  EXPECT_THAT([&] { read_text(open_text(file, {.max_bytes = 99'999}), "a"); },
              ThrowsMessage<error>("read a.zip/a: it has 100000 bytes; max_bytes is 99999"));
  EXPECT_NO_THROW(read_text(open_text(file, {.max_bytes = 100'000}), "a"));
  zip_entry liar("a", "text", true);
  liar.size = 1'000'000'000;
  EXPECT_THAT([&] { read_text({liar}, "a"); },
              ThrowsMessage<error>("read a.zip/a: 6 bytes cannot become 1000000000"));
}

TEST(Zip, ABombThatLiesAboutItsSizeIsRefusedInTheMemoryThatItClaims) {
  const zip_entry bomb("a", std::string(10'000'000, 'x'), true);
  auto refusal_of = [&](std::uint64_t size, std::size_t most) {
    runtime runtime;
    auto liar = bomb;
    liar.size = size;
    auto archive = open_text(buffer_of(zip_of({liar})), {.max_bytes = 10'000'001});
    EXPECT_THAT([&] { sync_wait(runtime, archive.read("a")); },
                ThrowsMessage<error>("inflate a.zip/a: its data are damaged, or not of " +
                                     std::to_string(size) + " bytes"));
    EXPECT_LE(runtime.memory().stats().peak_bytes, most);
  };
  refusal_of(0, 0);
  refusal_of(10, 64);
  refusal_of(9'999'999, 12'000'000);
  refusal_of(10'000'001, 12'000'000);
}

TEST(Zip, ADirectoryThatAloneLiesAboutASizeIsRefused) {
  for (std::uint64_t size : {1u, 1001u}) {
    auto file = zip_of({{"a", std::string(1000, 'x'), true}});
    file.replace(file.find("PK\1\2") + 24, 4, little(size, 4));
    EXPECT_THAT([&] { read_text(open_text(buffer_of(file)), "a"); },
                ThrowsMessage<error>(AllOf(HasSubstr("read a.zip/a: "), HasSubstr("differs"))));
  }
}

// Sizes and checksum of zero, with the flag that they follow the data.
TEST(Zip, AMemberWhoseSizesFollowItIsRead) {
  zip_entry streamed("a", "text");
  streamed.flags = 8;
  auto file = zip_of({streamed});
  file.replace(14, 12, 12, '\0');
  EXPECT_EQ(read_text(open_text(buffer_of(file)), "a"), "text");
}

// A number that the first line of Python's zipfile would not write unless it must.
static std::string zip64_of(const std::string& content, std::uint64_t locator_moved = 0) {
  zip_entry entry("a", content);
  auto file = zip_of({entry});
  auto directory_at = file.size() - 22 - 47;
  auto local = file.substr(0, directory_at);
  auto central = file.substr(directory_at, 47);
  central.replace(20, 8, 8, '\xff').replace(42, 4, 4, '\xff').replace(30, 2, little(28, 2));
  central += little(1, 2) + little(24, 2) + little(content.size(), 8) + little(content.size(), 8) +
             little(0, 8);
  auto end = local.size() + central.size();
  auto record = "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
                little(1, 8) + little(1, 8) + little(central.size(), 8) + little(local.size(), 8);
  auto locator = "PK\6\7" + little(0, 4) + little(end + locator_moved, 8) + little(1, 4);
  return local + central + record + locator + "PK\5\6" + little(0, 4) + std::string(12, '\xff') +
         little(0, 2);
}

TEST(Zip, NumbersOf64BitsAreRead) {
  EXPECT_EQ(read_text(open_text(buffer_of(zip64_of("text"))), "a"), "text");
  EXPECT_EQ(read_text(open_text(buffer_of("prefix" + zip64_of("text"))), "a"), "text");
  EXPECT_THAT([] { open_text(buffer_of(zip64_of("text", 1))); },
              ThrowsMessage<error>(HasSubstr("points elsewhere")));
}

TEST(Zip, ADirectoryLargerThanTheEndThatIsReadFirstIsRead) {
  std::vector<zip_entry> entries;
  for (int i = 0; i < 3000; ++i) entries.emplace_back(std::to_string(i), std::to_string(i));
  auto archive = open_text(buffer_of(zip_of(entries)));
  for (int i = 0; i < 3000; ++i)
    ASSERT_EQ(read_text(archive, std::to_string(i)), std::to_string(i));
}

TEST(Zip, AStoredMemberIsOpenedForRandomAccess) {
  auto file = buffer_of("prefix" + zip_of({{"a.bin", "0123456789"}, {"empty", ""}}));
  auto opened = sync_wait(open_text(file).open("a.bin"));
  EXPECT_EQ(opened->name(), "a.zip/a.bin");
  EXPECT_EQ(opened->size(), 10u);
  EXPECT_EQ(sync_wait(opened->read_at(3, 4)).text(), "3456");
  std::byte into[8];
  EXPECT_EQ(sync_wait(opened->read_at(std::span(into), 7)), 3u);
  EXPECT_THAT([&] { (void)sync_wait(opened->read_at(8, 3)); },
              ThrowsMessage<error>("read 3 bytes at 8 of a.zip/a.bin: it has 10 bytes"));
  EXPECT_EQ(sync_wait(open_text(file).open("empty"))->size(), 0u);
}

TEST(Zip, AnArchiveInAnArchiveIsOpened) {
  auto inner = zip_of({{"x", "text"}, {"y", std::string(1000, 'y'), true}});
  auto outer = open_text(buffer_of(zip_of({{"pad", "1"}, {"inner.zip", inner}})));
  auto archive = sync_wait(open_zip(sync_wait(outer.open("inner.zip"))));
  EXPECT_EQ(archive.name(), "a.zip/inner.zip");
  EXPECT_EQ(read_text(archive, "x"), "text");
  EXPECT_EQ(read_text(archive, "y"), std::string(1000, 'y'));
}

TEST(Zip, AMemberThatCannotBeOpenedIsNamed) {
  auto refusal = [](zip_entry entry, const std::string& why) {
    auto archive = open_text(buffer_of(zip_of({std::move(entry)})));
    EXPECT_THAT([&] { (void)sync_wait(archive.open("a")); },
                ThrowsMessage<error>(AllOf(HasSubstr("a.zip/a: "), HasSubstr(why))));
  };
  refusal({"a", "text", true}, "it is deflated, so that it can only be read as a whole");
  refusal({"b", "text"}, "the archive has no such member");
  zip_entry changed("a", "text");
  changed.flags = 1;
  refusal(changed, "encryption is not supported");
  changed = {"a", "text"};
  changed.size = 5;
  refusal(changed, "two sizes");
  changed = {"a", "text"};
  changed.local_name = "b";
  refusal(changed, "another name");
  // Its CRC-32 is not compared: a range of it says nothing of the rest.
  changed = {"a", "text"};
  changed.crc ^= 1;
  auto archive = open_text(buffer_of(zip_of({changed})));
  EXPECT_EQ(sync_wait(sync_wait(archive.open("a"))->read_at(0, 4)).text(), "text");
}

class ZipFile : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, ZipFile,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(ZipFile, MembersOfEverySizeAreRead) {
  temp_dir dir;
  runtime runtime(options());
  std::vector<zip_entry> entries;
  for (std::size_t bytes : {0u, 1u, 1000u, 120'000u, 140'000u, 1'000'000u})
    for (bool deflate : {false, true})
      entries.emplace_back(std::to_string(bytes) + (deflate ? "d" : "s"), std::string(bytes, 'x'),
                           deflate);
  for (auto& each : entries)
    each.extra = little(0x7777, 2) + little(2000, 2) + std::string(2000, 'e');
  auto archive = sync_wait(runtime, open_zip(dir.write("a.zip", zip_of(entries))));
  for (auto& member : archive.members()) {
    auto content = sync_wait(runtime, archive.read(member));
    EXPECT_TRUE(content.text() == std::string(member.size(), 'x')) << member.name();
  }
  EXPECT_THAT([&] { sync_wait(runtime, open_zip(dir / "absent")); },
              ThrowsMessage<error>(HasSubstr("open " + (dir / "absent"))));
}

TEST_P(ZipFile, AStoredMemberIsReadByRanges) {
  temp_dir dir;
  runtime runtime(options());
  std::string content;
  for (int i = 0; i < 100'000; ++i) content += std::to_string(i);
  zip_entry entry("a", content);
  entry.extra = little(0x7777, 2) + little(2000, 2) + std::string(2000, 'e');
  auto archive = sync_wait(runtime, open_zip(dir.write("a.zip", zip_of({entry}))));
  auto opened = sync_wait(runtime, archive.open("a"));
  auto seed = new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100; ++i) {
    auto offset = random() % content.size();
    auto bytes = random() % (content.size() - offset);
    ASSERT_TRUE(sync_wait(runtime, opened->read_at(offset, bytes)).text() ==
                content.substr(offset, bytes));
  }
}

TEST_P(ZipFile, SamplesAreReadByAPipeline) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("a.zip", zip_of({{"a", "1"}, {"d/", ""}, {"b", "2", true}}));
  auto archive = sync_wait(runtime, open_zip(path));
  std::string text;
  auto read = runtime.run(from(archive.samples()) | map(read_zip(archive)));
  for (auto& each : read) text += each.key() + std::string(each.data().text());
  EXPECT_EQ(text, "a1b2");
}

static std::string describe_all(const zip_archive& archive) {
  std::string text;
  for (auto& member : archive.members())
    text += describe(member.name(), sync_wait(archive.read(member)));
  return text;
}

TEST(Zip, ReadsAllArchivesThatPythonWrites) {
  if (!have_python("zipfile, numpy")) GTEST_SKIP() << "Python or NumPy is not installed";
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (auto& file : make_files("zip", 1000, seed))
    ASSERT_EQ(describe_all(open_text(file.content)), file.described);
}

}  // namespace lade::io::zip_test
