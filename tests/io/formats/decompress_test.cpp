#include <lade/error.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "../../support/seed.hpp"
#include "tar_bytes.hpp"

namespace lade::io::decompress_test {

using test::chunks_of;
using testing::HasSubstr;
using testing::ThrowsMessage;

static std::string gzip(const std::string& content) {
  std::string made(compressBound(content.size()) + 100, '\0');
  z_stream zlib{};
  deflateInit2(&zlib, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  zlib.avail_in = static_cast<uInt>(content.size());
  zlib.next_out = reinterpret_cast<Bytef*>(made.data());
  zlib.avail_out = static_cast<uInt>(made.size());
  deflate(&zlib, Z_FINISH);
  made.resize(zlib.total_out);
  deflateEnd(&zlib);
  return made;
}

static std::string zstd(const std::string& content, int window_log = 0) {
  std::string made(ZSTD_compressBound(content.size()), '\0');
  auto* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  ZSTD_inBuffer in{content.data(), content.size(), 0};
  ZSTD_outBuffer out{made.data(), made.size(), 0};
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_continue);
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
  made.resize(out.pos);
  ZSTD_freeCCtx(context);
  return made;
}

static task<std::string> joined(async_generator<buffer> chunks) {
  std::string all;
  while (auto* chunk = co_await chunks.next()) {
    EXPECT_FALSE(chunk->empty());
    all += chunk->text();
  }
  co_return all;
}

static std::string decompressed(std::string bytes, decompress_options options = {},
                                std::size_t chunk_bytes = 1000) {
  auto chunks = chunks_of(std::move(bytes), chunk_bytes);
  return sync_wait(joined(decompress(std::move(chunks), "a.gz", options)));
}

static std::string random_content(std::mt19937_64& random) {
  std::string content;
  while (random() % 8 != 0)
    content += random() % 2 ? std::string(random() % 5000, 'x') : std::to_string(random());
  return content;
}

TEST(Decompress, RestoresTheContentWithAnyChunkSize) {
  auto seed = test::new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    auto first = random_content(random);
    auto second = random_content(random);
    auto chunk = 1 + random() % 3000;
    decompress_options options{.chunk_bytes = 1 + random() % 3000};
    ASSERT_EQ(decompressed(gzip(first), options, chunk), first);
    ASSERT_EQ(decompressed(zstd(first), options, chunk), first);
    ASSERT_EQ(decompressed(gzip(first) + gzip(second), options, chunk), first + second);
    ASSERT_EQ(decompressed(zstd(first) + zstd(second), options, chunk), first + second);
    ASSERT_EQ(decompressed(gzip(first) + std::string(99, '\0'), options, chunk), first);
    ASSERT_EQ(decompressed("." + first, options, chunk), "." + first);
  }
}

TEST(Decompress, OtherBytesPassThrough) {
  for (auto text : {"", "a", "\x1f", "text", "PK\x03\x04 and more"})
    EXPECT_EQ(decompressed(text, {}, 1), text);
}

TEST(Decompress, SkippableFramesArePassedOver) {
  EXPECT_EQ(decompressed(std::string("\x50\x2a\x4d\x18\x03\0\0\0abc", 11) + zstd("text")), "text");
}

TEST(Decompress, StreamsThatAreCutShortAreRefusedWhereverTheyEnd) {
  for (auto whole : {gzip("some text, and some more text"), zstd("some text, and more"),
                     zstd("one") + zstd("two")}) {
    auto frame = zstd("one").size();
    for (std::size_t bytes = 4; bytes < whole.size(); ++bytes) {
      if (bytes == frame && whole.starts_with(zstd("one"))) continue;
      EXPECT_THAT([&] { decompressed(whole.substr(0, bytes)); },
                  ThrowsMessage<error>("decompress a.gz: it is cut short"))
          << bytes;
    }
  }
}

TEST(Decompress, DamageIsFound) {
  for (auto whole : {gzip(std::string(100, 'a') + "text"), zstd(std::string(100, 'a') + "text")}) {
    auto damaged = whole;
    damaged[damaged.size() - 2] ^= 1;
    EXPECT_THAT([&] { decompressed(damaged); },
                ThrowsMessage<error>(HasSubstr("decompress a.gz: ")));
    EXPECT_THAT([&] { decompressed(whole + "more than four"); },
                ThrowsMessage<error>(HasSubstr("decompress a.gz: ")));
  }
}

TEST(Decompress, ABombIsRefusedByName) {
  for (auto bomb : {gzip(std::string(10'000'000, 'a')), zstd(std::string(10'000'000, 'a'))}) {
    EXPECT_THAT(
        [&] { decompressed(bomb, {.max_bytes = 9'999'999}); },
        ThrowsMessage<error>("decompress a.gz: it expands to more than max_bytes, 9999999"));
    EXPECT_EQ(decompressed(bomb, {.max_bytes = 10'000'000}).size(), 10'000'000u);
  }
}

// What a stream of members fails of, and the most memory that it takes from the pool.
static std::pair<std::string, std::size_t> refusal_and_memory(std::string archive,
                                                              decompress_options unpack,
                                                              tar_options options = {}) {
  runtime runtime;
  std::string refusal = "none";
  auto names = [](async_generator<tar_member> members) -> task<std::vector<std::string>> {
    std::vector<std::string> all;
    while (auto* member = co_await members.next()) all.push_back(member->name());
    co_return all;
  };
  try {
    auto content = decompress(chunks_of(std::move(archive), 1000), "a.tar.gz", unpack);
    (void)sync_wait(runtime, names(tar_members(std::move(content), "a.tar.gz", options)));
  } catch (const error& refused) {
    refusal = refused.what();
  }
  return {refusal, runtime.memory().stats().peak_bytes};
}

TEST(Decompress, AnArchiveWhoseMemberIsABombIsRefusedByNameInLittleMemory) {
  constexpr std::size_t mega = std::size_t{1} << 20;
  auto archive = test::tar_file("small", "text") +
                 test::tar_file("bomb", std::string(16 * mega, '\0')) + test::tar_end();
  for (auto& packed : {gzip(archive), zstd(archive)}) {
    ASSERT_LT(packed.size(), mega / 8);
    auto [of_member, for_member] = refusal_and_memory(packed, {}, {.max_member_bytes = 2 * mega});
    EXPECT_EQ(of_member,
              "read a.tar.gz: header at byte 1024, behind small: bomb has 16777216 bytes; "
              "max_member_bytes is 2097152");
    EXPECT_LE(for_member, 4 * mega);
    auto [of_stream, for_stream] = refusal_and_memory(packed, {.max_bytes = 4 * mega});
    EXPECT_EQ(of_stream, "decompress a.tar.gz: it expands to more than max_bytes, 4194304");
    EXPECT_LE(for_stream, 24 * mega);  // the member has started
  }
}

TEST(Decompress, WhatIsInACompressedStreamIsNotDecompressedAgain) {
  auto bomb = gzip(std::string(10'000'000, 'a'));
  EXPECT_EQ(decompressed(gzip(bomb), {.max_bytes = bomb.size()}), bomb);
  EXPECT_EQ(decompressed(zstd(bomb), {.max_bytes = bomb.size()}), bomb);
  auto archive = gzip(test::tar_file("bomb.gz", bomb) + test::tar_end());
  auto [refusal, memory] = refusal_and_memory(archive, {.max_bytes = bomb.size() + 2048});
  EXPECT_EQ(refusal, "none");
  EXPECT_LE(memory, std::size_t{4} << 20);
}

TEST(Decompress, AWindowBeyondTheLimitIsRefused) {
  std::string content(3'000'000, 'a');
  EXPECT_THAT([&] { decompressed(zstd(content, 21), {.max_window_bytes = 1 << 20}); },
              ThrowsMessage<error>(HasSubstr("max_window_bytes")));
  EXPECT_EQ(decompressed(zstd(content, 21), {.max_window_bytes = 1 << 21}), content);
}

// Its header says so before anything is known of how much there is.
TEST(Decompress, AWindowBeyondAllBytesIsRefused) {
  std::string content(100'000, 'a');
  EXPECT_EQ(decompressed(zstd(content, 23), {.max_bytes = 100'000}), content);
  EXPECT_THAT(
      [&] { decompressed(zstd(content, 24), {.max_bytes = 100'000}); },
      ThrowsMessage<error>("decompress a.gz: its frame refers back farther than max_bytes"));
  EXPECT_EQ(decompressed(zstd(content, 24), {.max_bytes = 9 << 20}), content);
}

TEST(Decompress, OptionsThatCannotWorkAreRefused) {
  for (auto options :
       {decompress_options{.chunk_bytes = 0}, decompress_options{.max_window_bytes = 1000},
        decompress_options{.max_window_bytes = 1}})
    EXPECT_THAT([&] { decompressed(zstd("text"), options); }, testing::Throws<error>());
}

}  // namespace lade::io::decompress_test
