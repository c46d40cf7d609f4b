#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/tar_index.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "tar_bytes.hpp"

namespace lade::io::tar_index_test {

using test::pax_record;
using test::tar_end;
using test::tar_file;
using test::tar_header;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::temp_dir;

// Bytes in memory that count how many of them are read.
class counted_reader final : public byte_reader {
 public:
  explicit counted_reader(std::string content) : content_(std::move(content)) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return content_.size(); }
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    auto part = std::string_view(content_).substr(offset, into.size());
    std::memcpy(into.data(), part.data(), part.size());
    read_ += part.size();
    ++reads_;
    co_return part.size();
  }
  using byte_reader::read_at;

  std::size_t bytes_read() const { return read_; }
  std::size_t reads() const { return reads_; }

 private:
  std::string content_;
  std::string name_ = "a.tar";
  mutable std::size_t read_ = 0;
  mutable std::size_t reads_ = 0;
};

static tar_index index_of(const std::string& bytes, tar_options options = {}) {
  return sync_wait(index_tar(std::make_shared<counted_reader>(bytes), "v1", options));
}

static std::vector<std::string> names_in(const tar_index& index) {
  std::vector<std::string> names;
  for (auto& each : index.entries()) names.push_back(each.name());
  return names;
}

static task<std::vector<tar_entry>> entries_of(async_generator<tar_member> members) {
  std::vector<tar_entry> all;
  while (auto* member = co_await members.next())
    all.emplace_back(member->name(), member->offset(), member->content().size());
  co_return all;
}

static std::vector<tar_entry> streamed(std::string bytes) {
  return sync_wait(entries_of(tar_members(test::chunks_of(std::move(bytes), 1 << 20), "a.tar")));
}

static std::vector<tar_entry> read_at_offsets(const std::string& bytes) {
  return sync_wait(entries_of(tar_members(std::make_shared<counted_reader>(bytes))));
}

static std::string random_archive(std::mt19937_64& random) {
  std::string bytes;
  for (auto left = random() % 30; left > 0; --left) {
    auto name = std::to_string(random());
    if (random() % 3 == 0)
      bytes += tar_file("@x", pax_record("path", std::string(random() % 6000, 'p') + name), 'x');
    bytes += tar_file(name, std::string(random() % 2 ? random() % 100 : random() % 9000, 'x'));
  }
  return bytes + tar_end();
}

TEST(TarIndex, HasTheMembersOfTheStream) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    auto bytes = random_archive(random);
    auto index = index_of(bytes);
    ASSERT_EQ(index.entries(), streamed(bytes));
    ASSERT_EQ(read_at_offsets(bytes), streamed(bytes));
    ASSERT_EQ(tar_index_from_bytes(to_bytes(index)), index);
  }
}

TEST(TarIndex, ReadsHeadersOnly) {
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += tar_file(std::to_string(i), std::string(1'000'000, 'x'));
  auto reader = std::make_shared<counted_reader>(bytes + tar_end());
  EXPECT_EQ(sync_wait(index_tar(reader)).entries().size(), 20u);
  EXPECT_LE(reader->bytes_read(), 22u * 4096);
  EXPECT_LE(reader->reads(), 22u);
}

TEST(TarIndex, DamageIsThatOfTheStream) {
  auto good = tar_file("good", std::string(5000, 'x'));
  auto failure = [](const std::string& bytes) -> std::string {
    try {
      index_of(bytes);
    } catch (const error& thrown) {
      return thrown.what();
    }
    return "none";
  };
  EXPECT_THAT(failure(good),
              HasSubstr("a.tar: header at byte 5632, behind good: the archive ends"));
  EXPECT_THAT(failure(good.substr(0, 3000)), HasSubstr("read good of a.tar: it ends at byte 3000"));
  EXPECT_THAT(failure(good + "more"), HasSubstr("a header of a.tar: it ends at byte 5636"));
  EXPECT_THAT(failure(tar_header("x", ~std::uint64_t{0} >> 31) + tar_end()),
              HasSubstr("x has 8589934591 bytes; max_member"));
  EXPECT_THAT(failure("\x1f\x8b\x08 and so on"), HasSubstr("it is compressed"));
  auto bad = tar_file("bad", "content");
  bad[0] = 'B';
  damage_log log;
  auto index =
      index_of(good + bad + good + tar_end(), {.on_damage = on_damage::skip_member, .log = &log});
  EXPECT_THAT(names_in(index), ElementsAre("good", "good"));
  EXPECT_EQ(log.count(), 1u);
}

TEST(TarIndex, MalformedBytesAreRefused) {
  auto bytes = to_bytes(index_of(tar_file("a", "1") + tar_file("b", "2") + tar_end()));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(tar_index_from_bytes(bytes.substr(0, size)), error);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= 4;
    EXPECT_THROW(tar_index_from_bytes(changed), error);
  }
  EXPECT_THAT([] { tar_index_from_bytes("LADETAR2"); },
              ThrowsMessage<error>("read an index: it is no index, or of another version"));
  EXPECT_THROW(tar_index(10, "", {tar_entry("a", 8, 3)}), error);
}

static std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TarIndex, AnIndexThatIsStaleOrDamagedIsReplaced) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto reader = std::make_shared<counted_reader>(tar_file("a", "1") + tar_end());
  auto path = index_path(dir / "a.tar");
  auto names = [&](const std::shared_ptr<counted_reader>& of, const std::string& identity) {
    return names_in(sync_wait(runtime, load_or_index_tar(of, identity, path)));
  };
  EXPECT_THAT(names(reader, "v1"), ElementsAre("a"));
  auto reads = reader->reads();
  EXPECT_THAT(names(reader, "v1"), ElementsAre("a"));
  EXPECT_EQ(reader->reads(), reads);
  auto other = std::make_shared<counted_reader>(tar_file("b", "1") + tar_end());
  EXPECT_THAT(names(other, "v2"), ElementsAre("b"));
  auto longer =
      std::make_shared<counted_reader>(tar_file("c", "1") + tar_file("d", "") + tar_end());
  EXPECT_THAT(names(longer, "v2"), ElementsAre("c", "d"));
  dir.write("a.tar.lade-index", "nonsense");
  EXPECT_THAT(names(longer, "v2"), ElementsAre("c", "d"));
  EXPECT_NE(content_of(path), "nonsense");
}

TEST(TarIndex, IsUsedAlsoWhereItCannotBeSaved) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto reader = std::make_shared<counted_reader>(tar_file("a", "1") + tar_end());
  auto index = sync_wait(runtime, load_or_index_tar(reader, "", dir / "absent/a.lade-index"));
  EXPECT_THAT(names_in(index), ElementsAre("a"));
  EXPECT_THAT([&] { save(index, dir / "absent/a"); }, ThrowsMessage<error>(HasSubstr("absent/a")));
}

TEST(TarIndex, OfADamagedArchiveIsNotKept) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto reader = std::make_shared<counted_reader>(tar_file("a", "1"));
  damage_log log;
  tar_options options{.on_damage = on_damage::skip_member, .log = &log};
  auto index = sync_wait(runtime, load_or_index_tar(reader, "", dir / "index", options));
  EXPECT_THAT(names_in(index), ElementsAre("a"));
  EXPECT_EQ(log.count(), 1u);
  EXPECT_FALSE(std::filesystem::exists(dir / "index"));
}

TEST(TarIndex, IsBesideItsArchiveOrInADirectory) {
  EXPECT_EQ(index_path("x/a.tar"), "x/a.tar.lade-index");
  EXPECT_THAT(index_path("x/a.tar", "d"), testing::StartsWith("d/a.tar-"));
  EXPECT_NE(index_path("x/a.tar", "d"), index_path("y/a.tar", "d"));
}

TEST(TarIndex, IsOfOneObjectHoweverItsUrlIsSigned) {
  const std::string signature = "X-Amz-Credential=a&X-Amz-Date=1&X-Amz-Signature=";
  auto path = [](const std::string& url) { return index_path(url, "d"); };
  EXPECT_EQ(path("https://h/a.tar?" + signature + "b"), path("https://h/a.tar"));
  EXPECT_EQ(path("https://h/a.tar?x=1&" + signature + "b"), path("https://h/a.tar?x=1"));
  EXPECT_NE(path("https://h/a.tar?x=1"), path("https://h/a.tar?x=2"));
  EXPECT_NE(path("https://h/a.tar?x=1"), path("https://h/a.tar"));
  EXPECT_THAT(path("https://h/a.tar?token=abc"), testing::Not(testing::HasSubstr("abc")));
  EXPECT_EQ(index_path("https://h/a.tar?x=1"), "");
}

}  // namespace lade::io::tar_index_test
