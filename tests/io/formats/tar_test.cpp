#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../support/seed.hpp"
#include "tar_bytes.hpp"

namespace lade::io::tar_test {

using test::chunks_of;
using test::padded;
using test::pax_record;
using test::tar_end;
using test::tar_file;
using test::tar_header;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

static task<std::vector<tar_member>> all_of(async_generator<tar_member> members) {
  std::vector<tar_member> all;
  while (auto* member = co_await members.next()) all.push_back(std::move(*member));
  co_return all;
}

static std::vector<tar_member> read(std::string bytes, tar_options options = {},
                                    std::size_t chunk_bytes = 1 << 20) {
  return sync_wait(all_of(tar_members(chunks_of(std::move(bytes), chunk_bytes), "a.tar", options)));
}

static std::vector<std::string> texts(const std::vector<tar_member>& members) {
  std::vector<std::string> all;
  for (auto& each : members) all.push_back(each.name() + "=" + std::string(each.content().text()));
  return all;
}

static std::string failure_of(const std::string& bytes, tar_options options = {}) {
  try {
    read(bytes, options);
  } catch (const error& failure) {
    return failure.what();
  }
  return "none";
}

static std::chrono::sys_seconds at_second(std::int64_t second) {
  return std::chrono::sys_seconds(std::chrono::seconds(second));
}

TEST(Tar, MembersComeWithNameContentOffsetTimeAndMode) {
  auto members = read(tar_file("a", "first") + tar_file("b/c", "") + tar_end());
  EXPECT_THAT(texts(members), ElementsAre("a=first", "b/c="));
  EXPECT_EQ(members[0].offset(), 512u);
  EXPECT_EQ(members[1].offset(), 3u * 512);
  EXPECT_EQ(members[0].modified(), at_second(1'700'000'000));
  EXPECT_EQ(members[0].mode(), 0644u);
}

TEST(Tar, ReadsTheSameMembersWithAnyChunkSize) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::string bytes;
    std::vector<std::string> expected;
    for (auto left = random() % 20; left > 0; --left) {
      std::string content(random() % 3000, static_cast<char>(random()));
      auto name = std::to_string(random());
      expected.push_back(name + "=" + content);
      bytes += tar_file(name, content);
    }
    bytes += tar_end();
    for (std::size_t chunk : {std::size_t{1}, std::size_t{511}, std::size_t{512}, std::size_t{4096},
                              1 + random() % 10000})
      ASSERT_EQ(texts(read(bytes, {}, chunk)), expected) << chunk;
  }
}

TEST(Tar, AMemberInOneBufferIsAViewOfIt) {
  auto members = read(tar_file("a", "first") + tar_file("b", "second") + tar_end());
  EXPECT_EQ(members[1].content().data() - members[0].content().data(), 1024);
}

TEST(Tar, LinksAreRefusedByName) {
  const std::string name(120, 'n');
  const auto long_name = tar_file("@x", pax_record("path", name), 'x');
  const auto hard = tar_header("x", 1000, '1');
  EXPECT_THAT(failure_of(hard + tar_end()),
              HasSubstr("x is a hard link: archive it with --hard-dereference"));
  EXPECT_THAT(failure_of(long_name + tar_header("n", 0, '2') + tar_end()),
              HasSubstr(name + " is a symbolic link: archive it with --dereference"));
  damage_log log;
  auto bytes = tar_file("a", "1") + long_name + hard + tar_file("b", "2") + tar_end();
  auto members = read(bytes, {.on_damage = on_damage::skip_member, .log = &log});
  EXPECT_THAT(texts(members), ElementsAre("a=1", "b=2"));
  EXPECT_EQ(log.count(), 1u);
}

TEST(Tar, AnExtensionWithoutItsHeaderIsDamage) {
  for (auto& extension : {tar_file("@x", pax_record("path", "lost"), 'x'),
                          tar_file("././@LongLink", std::string("lost\0", 5), 'L')})
    EXPECT_THAT(failure_of(tar_file("a", "1") + extension + tar_end()),
                HasSubstr("zeros instead of the announced header"));
}

TEST(Tar, DirectoriesAndDevicesAreSkipped) {
  std::string bytes;
  for (char type : {'3', '4', '5', '6'}) bytes += tar_header("x", 1000, type);
  bytes += tar_file("v7/", "", '\0') + tar_file("label", "", 'V') + tar_file("dump", "list", 'D');
  bytes += tar_file("contiguous", "here", '7') + tar_file("old", "there", '\0') + tar_end();
  EXPECT_THAT(texts(read(bytes)), ElementsAre("contiguous=here", "old=there"));
}

TEST(Tar, NamesAreOfUstarGnuOrPax) {
  auto prefixed = tar_header("end", 1);
  prefixed.replace(345, 5, "begin");
  test::set_checksum(prefixed);
  auto gnu = prefixed;
  gnu.replace(257, 8, "ustar  \0", 8);
  test::set_checksum(gnu);
  std::string name(300, 'n');
  auto bytes = prefixed + padded("1") + gnu + padded("2") +
               tar_file("././@LongLink", name + '\0', 'L') + tar_file(name.substr(0, 100), "3") +
               tar_file("@pax", pax_record("path", name + "p"), 'x') + tar_file("short", "4") +
               tar_file("after", "5") + tar_end();
  EXPECT_THAT(texts(read(bytes)),
              ElementsAre("begin/end=1", "end=2", name + "=3", name + "p=4", "after=5"));
}

TEST(Tar, PaxSaysSizesAndTimesAndGlobalRecordsLast) {
  auto wrong_size = tar_header("a", 0);
  auto bytes = tar_file("@g", pax_record("mtime", "-1.5") + pax_record("comment", "x"), 'g') +
               tar_file("@x", pax_record("size", "5") + pax_record("mtime", "12.000000001"), 'x') +
               wrong_size + padded("first") + tar_file("b", "") +
               tar_file("@x", pax_record("mtime", ""), 'x') + tar_file("c", "") + tar_end();
  auto members = read(bytes);
  EXPECT_THAT(texts(members), ElementsAre("a=first", "b=", "c="));
  EXPECT_EQ(members[0].modified(), at_second(12) + std::chrono::nanoseconds(1));
  EXPECT_EQ(members[1].modified(), at_second(-1) - std::chrono::milliseconds(500));
  EXPECT_EQ(members[2].modified(), at_second(1'700'000'000));
}

TEST(Tar, NumbersMayBeInBase256AndSumsSigned) {
  auto block = tar_header("\xff\xfe", 0);
  block.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12));
  block.replace(136, 12, std::string(11, '\xff') + '\xfe');  // -2
  test::set_checksum(block);
  unsigned high = 0;
  for (auto c : block) high += static_cast<unsigned char>(c) >> 7;
  auto is_signed = block;
  auto sum = std::stoul(block.substr(148, 6), nullptr, 8) - 256 * high;
  is_signed.replace(148, 6, test::octal(sum).substr(5, 6));
  auto members = read(block + padded("12345") + is_signed + padded("67890") + tar_end());
  EXPECT_THAT(texts(members), ElementsAre("\xff\xfe=12345", "\xff\xfe=67890"));
  EXPECT_EQ(members[0].modified(), at_second(-2));
}

TEST(Tar, SparseFilesAreRefusedByName) {
  EXPECT_THAT(failure_of(tar_file("old.bin", "x", 'S') + tar_end()),
              HasSubstr("old.bin is a sparse file"));
  EXPECT_THAT(failure_of(tar_file("@x", pax_record("GNU.sparse.name", "new.bin"), 'x') +
                         tar_file("GNUSparseFile.0/new.bin", "x") + tar_end()),
              HasSubstr("new.bin is a sparse file"));
}

TEST(Tar, DamageNamesArchiveMemberAndOffset) {
  auto good = tar_file("good", "content");
  auto bad = tar_file("bad", "content");
  bad[0] = 'B';
  EXPECT_EQ(failure_of(good + bad + tar_end()),
            "read a.tar: header at byte 1024, behind good: its checksum is wrong");
  EXPECT_THAT(failure_of(good), HasSubstr("header at byte 1024, behind good: the archive ends"));
  EXPECT_THAT(failure_of(""), HasSubstr("header at byte 0: the archive ends here"));
  EXPECT_THAT(failure_of(good + std::string(512, '\0')), HasSubstr("two zero blocks"));
  EXPECT_THAT(failure_of(good + std::string(512, '\0') + good), HasSubstr("one zero block alone"));
  EXPECT_THAT(failure_of(good + tar_end() + good), HasSubstr("at byte 2048, behind good: data"));
  EXPECT_THAT(failure_of(good.substr(0, 700)), HasSubstr("good of a.tar: it ends at byte 700"));
  EXPECT_THAT(failure_of(good + bad.substr(0, 100)), HasSubstr("it ends at byte 1124"));
  EXPECT_THAT(failure_of(tar_file("strange", "", 'Q')), HasSubstr("strange has an unknown type"));
  EXPECT_THAT(failure_of(tar_file("", "") + tar_end()), HasSubstr("its name is empty"));
  EXPECT_THAT(failure_of(tar_file("@x", "nonsense", 'x')), HasSubstr("a pax record is damaged"));
  EXPECT_THAT(failure_of(tar_file("@x", pax_record("size", "-1"), 'x') + good),
              HasSubstr("good: its pax size is no size"));
}

TEST(Tar, AMemberLargerThanTheLimitIsRefusedByName) {
  EXPECT_THAT(failure_of(tar_file("large", "12345") + tar_end(), {.max_member_bytes = 4}),
              HasSubstr("large has 5 bytes; max_member_bytes is 4"));
}

static task<std::vector<tar_member>> read_with(buffer_pool& memory, std::string bytes) {
  auto execution = co_await this_context();
  execution.memory = &memory;
  auto members = all_of(tar_members(chunks_of(std::move(bytes), 1000), "a.tar"));
  co_return co_await with_context(execution, std::move(members));
}

TEST(Tar, AHeaderThatClaimsMuchAllocatesLittle) {
  buffer_pool memory;
  auto claim = [&] {
    sync_wait(read_with(memory, tar_header("a", std::uint64_t{3} << 30) + "xyz"));
  };
  EXPECT_THAT(claim, ThrowsMessage<error>(HasSubstr("read a of a.tar: it ends")));
  EXPECT_LE(memory.stats().peak_bytes, std::size_t{20} << 20);
  std::string huge_extension = tar_header("@x", std::uint64_t{3} << 30, 'x');
  EXPECT_THAT(failure_of(huge_extension), HasSubstr("announces a name or attributes of"));
}

TEST(Tar, BehindDamageTheNextMemberIsRead) {
  auto lost = tar_file("lost", "content");
  lost[0] = 'L';
  damage_log log;
  tar_options skip{.on_damage = on_damage::skip_member, .log = &log};
  auto bytes = tar_file("a", "1") + lost + tar_file("b", "2") + tar_file("sparse", "x", 'S') +
               tar_file("c", "3") + tar_end();
  EXPECT_THAT(texts(read(bytes, skip)), ElementsAre("a=1", "b=2", "c=3"));
  EXPECT_THAT(log.reports(),
              ElementsAre(HasSubstr("at byte 1024, behind a: its checksum is wrong"),
                          HasSubstr("at byte 3072, behind b: sparse is a sparse file")));
  EXPECT_THAT(texts(read(bytes.substr(0, bytes.size() - 1500), skip)), ElementsAre("a=1", "b=2"));
  EXPECT_EQ(log.count(), 5u);
  EXPECT_THAT(log.reports().back(), HasSubstr("c of a.tar"));
}

TEST(Tar, AMemberWhoseLongNameIsLostIsLeftOut) {
  std::string name(150, 'n');
  auto cut = name.substr(0, 100);
  for (auto extension :
       {tar_file("@x", pax_record("path", name), 'x'), tar_file("@LongLink", name + '\0', 'L')}) {
    for (auto damage : {std::string(512, '\0'), std::string(512, '?')}) {
      auto damaged = damage + extension.substr(512);
      auto bytes = damaged + tar_file(cut, "1") + tar_file("b", "2") + tar_end();
      damage_log log;
      EXPECT_THAT(texts(read(bytes, {.on_damage = on_damage::skip_member, .log = &log})),
                  ElementsAre("b=2"));
      EXPECT_THAT(log.reports().back(), HasSubstr("is skipped"));
    }
  }
  damage_log log;
  auto bytes = tar_file("@x", "nonsense", 'x') + tar_file(cut, "1") + tar_file("b", "2");
  EXPECT_THAT(texts(read(bytes + tar_end(), {.on_damage = on_damage::skip_member, .log = &log})),
              ElementsAre("b=2"));
  EXPECT_EQ(log.count(), 2u);
}

TEST(Tar, DamageMayEndTheArchive) {
  auto lost = tar_file("lost", "content");
  lost[0] = 'L';
  damage_log log;
  tar_options end{.on_damage = on_damage::end_archive, .log = &log};
  auto bytes = tar_file("a", "1") + lost + tar_file("b", "2") + tar_end();
  EXPECT_THAT(texts(read(bytes, end)), ElementsAre("a=1"));
  EXPECT_THAT(texts(read(tar_file("a", "1") + tar_end() + bytes, end)), ElementsAre("a=1"));
  EXPECT_EQ(log.count(), 2u);
}

TEST(Tar, ReportsWithoutALogAreRefused) {
  EXPECT_THAT(failure_of("", {.on_damage = on_damage::skip_member}), HasSubstr("needs a log"));
}

TEST(Tar, ArchivesThatWereAppendedAreReadIfZerosAreIgnored) {
  auto one = tar_file("a", "1") + tar_end();
  EXPECT_THAT(texts(read(one + one, {.ignore_zeros = true})), ElementsAre("a=1", "a=1"));
  EXPECT_THAT(failure_of(tar_file("a", "1"), {.ignore_zeros = true}), HasSubstr("ends here"));
}

static async_generator<buffer> disk_that_fails() {
  buffer nothing;
  if (nothing.empty()) raise(EIO, "read a.tar");
  co_yield nothing;
}

TEST(Tar, AFailingDiskIsNoDamage) {
  damage_log log;
  tar_options skip{.on_damage = on_damage::skip_member, .log = &log};
  EXPECT_THAT([&] { sync_wait(all_of(tar_members(disk_that_fails(), "a.tar", skip))); },
              ThrowsMessage<error>(HasSubstr("Input/output error")));
  EXPECT_EQ(log.count(), 0u);
}

// Whatever the damage, all members that come are true ones, and what is lost is reported.
TEST(Tar, BytesThatChangeLoseNoMoreThanTheirMembers) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::string whole;
  for (int i = 0; i < 20; ++i) {
    auto name = "member" + std::to_string(i);
    if (i % 3 == 0) {
      name = std::string(120, 'p') + name;
      whole += tar_file("@x", pax_record("path", name), 'x');
    }
    whole += tar_file(name, name + std::string(random() % 2000, 'x'));
  }
  whole += tar_end();
  auto expected = texts(read(whole));
  for (int round = 0; round < 300; ++round) {
    auto block = random() % (whole.size() / 512);
    auto damaged = whole;
    damaged.replace(block * 512, 512, std::string(512, static_cast<char>(random() % 3 ? 'd' : 0)));
    damage_log log;
    auto got = texts(read(damaged, {.on_damage = on_damage::skip_member, .log = &log}));
    EXPECT_GE(got.size() + 1, expected.size()) << block;
    for (auto& member : got) {
      auto name = member.substr(0, member.find('='));
      EXPECT_TRUE(
          std::ranges::any_of(expected, [&](auto& each) { return each.starts_with(name + '='); }))
          << name << " " << block;
    }
    EXPECT_TRUE(got.size() == expected.size() || log.count() > 0) << block;
  }
}

}  // namespace lade::io::tar_test
