// Archives that Python's tarfile writes, against what tarfile reads of them.

#include <lade/io/file.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/io/formats/tar_index.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <zlib.h>

#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"

namespace lade::io::tar_archives_test {

static std::string hex(std::string_view text) {
  static constexpr auto digits = "0123456789abcdef";
  std::string made;
  for (auto c : text) {
    made += digits[static_cast<unsigned char>(c) >> 4];
    made += digits[static_cast<unsigned char>(c) & 15];
  }
  return made;
}

static std::string line_of(const tar_member& member) {
  auto content = member.content();
  auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  return hex(member.name()) + " " + std::to_string(member.offset()) + " " +
         std::to_string(content.size()) + " " +
         std::to_string(member.modified().time_since_epoch().count()) + " " +
         std::to_string(member.mode()) + " " + std::to_string(sum) + "\n";
}

static task<std::string> lines_of(std::string path, std::size_t chunk_bytes) {
  std::string lines;
  auto bytes = decompress(stream(path, {.chunk_bytes = chunk_bytes}), path);
  auto members = tar_members(std::move(bytes), path);
  while (auto* member = co_await members.next()) lines += line_of(*member);
  co_return lines;
}

static task<std::string> places_of(std::string path) {
  auto archive = co_await open_reader(std::move(path));
  auto index = co_await index_tar(std::move(archive), {}, {.max_member_bytes = ~std::uint64_t{0}});
  std::string lines;
  for (auto& each : index.entries())
    lines += hex(each.name()) + " " + std::to_string(each.offset()) + " " +
             std::to_string(each.bytes()) + "\n";
  co_return lines;
}

static std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The first three words of each line.
static std::string places_in(const std::string& lines) {
  std::string places;
  int words = 0;
  for (auto c : lines) {
    if (c == ' ') ++words;
    if (c == '\n') words = 0;
    if (c == '\n' || words < 3) places += c;
  }
  return places;
}

// __FILE__ may be relative to the build directory, in or below which the program lies.
static std::filesystem::path script_path() {
  auto from = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(from / __FILE__) && from != from.root_path())
    from = from.parent_path();
  return std::filesystem::canonical(from / __FILE__).parent_path() / "tar_archives.py";
}

TEST(TarArchives, OfPythonAreReadAsPythonReadsThem) {
  auto seed = test::new_seed() % 1'000'000'000;
  SCOPED_TRACE("seed " + std::to_string(seed));
  testing_support::temp_dir dir;
  auto command = "/usr/bin/python3 " + script_path().string() + " " + dir.path().string() + " " +
                 std::to_string(seed) + " 400";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  runtime runtime({.threads = 2});
  std::size_t archives = 0;
  for (auto& file : std::filesystem::directory_iterator(dir.path())) {
    auto path = file.path().string();
    auto end = path.find(".tar");
    if (end == path.npos) continue;
    auto expected = content_of(path.substr(0, end) + ".txt");
    ++archives;
    bool is_large = path.find("large-") != path.npos;
    if (!is_large) {
      ASSERT_EQ(sync_wait(runtime, lines_of(path, 1 << 20)), expected) << path;
      ASSERT_EQ(sync_wait(runtime, lines_of(path, 1 + archives % 3000)), expected) << path;
    }
    if (path.ends_with(".tar")) {
      ASSERT_EQ(sync_wait(runtime, places_of(path)), places_in(expected)) << path;
    }
  }
  EXPECT_EQ(archives, 402u);
}

}  // namespace lade::io::tar_archives_test
