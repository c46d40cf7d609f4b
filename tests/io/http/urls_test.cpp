#include <lade/checksum.hpp>
#include <lade/error.hpp>
#include <lade/io/disk_cache.hpp>
#include <lade/io/file.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/io/memory_cache.hpp>
#include <lade/lade.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../support/temp_dir.hpp"
#include "../../support/web_server.hpp"

namespace lade::io::http::urls_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

// The default stores are made once, and the client keeps a handle for each request that has run
// beside others.
class Urls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    test::web_server server([](auto& request) { return test::file_reply(request, "x"); });
    runtime runtime;
    (void)sync_wait(runtime, io::read_file(server.url("/")));
    (void)sync_wait(runtime, find_store("gs://bucket/a")->identity());
  }
};

TEST_F(Urls, AreReadByAPipeline) {
  test::web_server server([](auto& request) { return test::file_reply(request, request.target); });
  std::vector<sample> samples;
  for (int i = 0; i < 200; ++i) samples.emplace_back(server.url("/" + std::to_string(i)), i);
  runtime runtime;
  int count = 0;
  for (auto& got : runtime.run(from(samples) | map(io::read, {.concurrency = 1}))) {
    EXPECT_EQ(got.data().text(), "/" + std::to_string(got.label()));
    ++count;
  }
  EXPECT_EQ(count, 200);
}

TEST_F(Urls, OfAbsentObjectsAreErrorsThatNameThem) {
  test::web_server server(
      [](auto&) { return test::web_reply{.status = 404, .body = "no such key"}; });
  std::vector<sample> samples{sample(server.url("/a?token=secret"))};
  runtime runtime;
  EXPECT_THAT(
      [&] {
        for (auto& got : runtime.run(from(samples) | map(io::read, {.concurrency = 1}))) (void)got;
      },
      ThrowsMessage<error>("read: get " + server.url("/a?token=...") +
                           ": 404 Not Found: no such key (attempt 1 of 5)"));
  EXPECT_FALSE(sync_wait(runtime, io::try_open(server.url("/a"))));
}

TEST_F(Urls, MayBeReadWithCustomOptions) {
  test::web_server server(
      [](auto& request) { return test::file_reply(request, request.headers.at("user-agent")); });
  io::mount(server.url("/"), web_store(client({.user_agent = "trainer/2"})));
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), "trainer/2");
  io::unmount(server.url("/"));
}

// So many bytes, none of them like its neighbours.
static std::string large_text(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 2654435761u >> 13);
  return text;
}

static std::vector<std::string> ranges_seen(const test::web_server& server) {
  std::vector<std::string> ranges;
  for (auto& request : server.seen())
    ranges.push_back(request.headers.count("range") ? request.headers.at("range") : "");
  std::ranges::sort(ranges);
  return ranges;
}

TEST_F(Urls, OfGoogleCloudStorageAreThoseOfItsInteroperableInterface) {
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, find_store("gs://bucket/a")->identity()),
            "https://storage.googleapis.com");
}

TEST_F(Urls, OfSmallObjectsAreReadByOneRequest) {
  test::web_server server([](auto& request) {
    return test::file_reply(request, request.target == "/empty" ? "" : "small");
  });
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), "small");
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/empty"))).text(), "");
  EXPECT_THAT(ranges_seen(server), ElementsAre("", ""));
}

TEST_F(Urls, OfLargeObjectsAreReadInPartsOfOneEntity) {
  const auto content = large_text(20'000'000);
  test::web_server server([&](auto& request) { return test::file_reply(request, content); });
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), content);
  EXPECT_THAT(ranges_seen(server), ElementsAre("", "bytes=0-8388607", "bytes=16777216-19999999",
                                               "bytes=8388608-16777215"));
  for (auto& request : server.seen())
    EXPECT_EQ(request.headers.count("if-match"), request.headers.count("range"));
}

TEST_F(Urls, OfServersWithoutRangesOrStrongTagsAreReadAtOnce) {
  const auto content = large_text(17'000'000);
  test::web_server whole([&](auto&) { return test::web_reply{.body = content}; });
  test::web_server weak(
      [&](auto& request) { return test::file_reply(request, content, "W/\"1\""); });
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::read_file(whole.url("/a"))).text(), content);
  EXPECT_EQ(whole.requests(), 1u);
  EXPECT_EQ(sync_wait(runtime, io::read_file(weak.url("/a"))).text(), content);
  EXPECT_THAT(ranges_seen(weak), ElementsAre(""));
}

TEST_F(Urls, OfObjectsThatChangeBetweenPartsAreErrors) {
  const auto content = large_text(17'000'000);
  test::web_server server([&](auto& request) {
    bool is_first = request.headers.count("range") == 0;
    return test::file_reply(request, content, is_first ? "\"v1\"" : "\"v2\"");
  });
  runtime runtime;
  EXPECT_THAT([&] { (void)sync_wait(runtime, io::read_file(server.url("/a"))); },
              ThrowsMessage<error>(HasSubstr(server.url("/a") + ": the object has changed")));
}

static std::string base64_of(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

TEST_F(Urls, OfLargeObjectsAreComparedWithTheChecksumOfTheWhole) {
  const auto content = large_text(17'000'000);
  crc32c sum;
  sum.update(std::as_bytes(std::span(content)));
  auto value = sum.value();
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  std::atomic<bool> is_damaged = true;
  std::atomic<int> wholes = 0;
  test::web_server server([&](auto& request) {
    bool is_whole = request.headers.count("range") == 0;
    auto reply = test::file_reply(request, content);
    if (is_whole) {
      reply.headers.emplace_back("x-amz-checksum-crc32c", base64_of(bytes));
      ++wholes;
    } else if (is_damaged.exchange(false)) {
      reply.body[1000] ^= 1;
    }
    return reply;
  });
  io::mount(server.url("/"), web_store(client({.retry = {.pause = std::chrono::milliseconds(1)}})));
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), content);
  EXPECT_EQ(wholes, 2);
  io::unmount(server.url("/"));
}

static task<object_part> part_of(std::string url, std::uint64_t offset, std::size_t bytes,
                                 std::string etag) {
  auto where = find_store(url);
  co_return co_await where->read_part(std::move(url), offset, bytes, std::move(etag));
}

TEST_F(Urls, PartsStateSizeAndTagOfTheWhole) {
  test::web_server server([&](auto& request) { return test::file_reply(request, "0123456789"); });
  runtime runtime;
  auto part = sync_wait(runtime, part_of(server.url("/a"), 4, 3, ""));
  EXPECT_EQ(part.content().text(), "456");
  EXPECT_EQ(part.object_bytes(), 10u);
  EXPECT_EQ(part.etag(), "v1");
  EXPECT_EQ(sync_wait(runtime, part_of(server.url("/a"), 8, 30, "v1")).content().text(), "89");
  EXPECT_THAT([&] { (void)sync_wait(runtime, part_of(server.url("/a"), 0, 3, "v0")); },
              ThrowsMessage<error>(HasSubstr(server.url("/a") + ": the object has changed")));
}

TEST_F(Urls, WithoutRangesAFirstPartReturnsTheWhole) {
  test::web_server server([](auto&) { return test::web_reply{.body = "0123456789"}; });
  runtime runtime;
  auto whole = sync_wait(runtime, part_of(server.url("/a"), 0, 3, ""));
  EXPECT_EQ(whole.content().text(), "0123456789");
  EXPECT_TRUE(whole.is_whole());
  EXPECT_THAT([&] { (void)sync_wait(runtime, part_of(server.url("/a"), 4, 3, "")); },
              ThrowsMessage<error>(HasSubstr("another part than bytes 4-6")));
}

// A server that does not say that it takes ranges, or has no strong tags, cannot be left early.
TEST_F(Urls, AFirstPartOfALongObjectReceivesLittle) {
  const auto content = large_text(3'000'000);
  std::atomic<std::size_t> sent = 0;
  test::web_server server([&](auto& request) {
    auto reply = test::file_reply(request, content, "W/\"v1\"");
    std::erase_if(reply.headers, [](auto& each) { return each.first == "Accept-Ranges"; });
    sent += reply.body.size();
    return reply;
  });
  runtime runtime;
  for (std::size_t bytes : {1u, 4096u}) {
    auto part = sync_wait(runtime, part_of(server.url("/a"), 0, bytes, ""));
    EXPECT_EQ(part.content().text(), content.substr(0, bytes));
    EXPECT_EQ(part.object_bytes(), content.size());
  }
  EXPECT_EQ(sent, 4097u);
}

TEST_F(Urls, OfEmptyObjectsWithoutRangesHaveAnEmptyPart) {
  test::web_server server([](auto& request) {
    return test::web_reply{.status = request.headers.count("range") ? 416 : 200, .body = ""};
  });
  runtime runtime;
  for (std::size_t bytes : {1u, 100'000u})
    EXPECT_EQ(sync_wait(runtime, part_of(server.url("/a"), 0, bytes, "")).object_bytes(), 0u);
}

TEST_F(Urls, OfEmptyObjectsHaveAnEmptyPart) {
  test::web_server server([](auto& request) { return test::file_reply(request, ""); });
  runtime runtime;
  for (std::size_t bytes : {1u, 10'000u}) {
    auto part = sync_wait(runtime, part_of(server.url("/empty"), 0, bytes, ""));
    EXPECT_TRUE(part.is_whole());
    EXPECT_EQ(part.object_bytes(), 0u);
    EXPECT_EQ(part.etag(), "v1");
  }
}

// Whether or not the server says the length with its refusal.
TEST_F(Urls, BehindTheEndOfAnObjectIsAnEmptyPart) {
  std::atomic<bool> says_length = true;
  test::web_server server([&](auto& request) {
    auto reply = test::file_reply(request, request.target == "/empty" ? "" : "0123456789");
    if (reply.status == 416 && !says_length) reply.headers.clear();
    return reply;
  });
  runtime runtime;
  for (bool says : {true, false}) {
    says_length = says;
    EXPECT_EQ(sync_wait(runtime, part_of(server.url("/a"), 9, 10'000, "v1")).content().text(), "9");
    for (std::uint64_t offset : {std::uint64_t{10}, std::uint64_t{11}, std::uint64_t{1} << 40})
      for (auto etag : {"", "v1"}) {
        auto part = sync_wait(runtime, part_of(server.url("/a"), offset, 5, etag));
        EXPECT_EQ(part.content().size(), 0u);
        EXPECT_EQ(part.object_bytes(), 10u);
        EXPECT_EQ(part.etag(), "v1");
      }
    EXPECT_EQ(sync_wait(runtime, part_of(server.url("/empty"), 7, 5, "")).object_bytes(), 0u);
    EXPECT_THAT([&] { (void)sync_wait(runtime, part_of(server.url("/a"), 10, 5, "v0")); },
                ThrowsMessage<error>(HasSubstr("the object has changed")));
  }
}

TEST_F(Urls, APartThatIsRefusedThoughItIsThereIsAnError) {
  test::web_server server([](auto& request) {
    bool is_first = request.headers.count("range") && request.range(10).first == 0;
    return is_first ? test::file_reply(request, "0123456789") : test::web_reply{.status = 416};
  });
  runtime runtime;
  EXPECT_THAT([&] { (void)sync_wait(runtime, part_of(server.url("/a"), 5, 5, "")); },
              ThrowsMessage<error>(HasSubstr("416")));
}

TEST_F(Urls, PartsNeedAServerThatStatesTheLength) {
  test::web_server server([](auto& request) {
    auto reply = test::file_reply(request, "0123456789");
    for (auto& [name, value] : reply.headers)
      if (name == "Content-Range") value = value.substr(0, value.find('/')) + "/*";
    return reply;
  });
  runtime runtime;
  EXPECT_THAT([&] { (void)sync_wait(runtime, part_of(server.url("/a"), 2, 3, "")); },
              ThrowsMessage<error>(HasSubstr("the server does not state its length")));
}

TEST_F(Urls, OfPartsAreRepeatedAndCountedLikeOtherRequests) {
  std::atomic<int> calls = 0;
  test::web_server server([&](auto& request) {
    return ++calls % 3 != 0 ? test::web_reply{.status = 503}
                            : test::file_reply(request, std::string(100'000, 'x'));
  });
  client web({.retry = {.attempts = 3, .pause = std::chrono::milliseconds(1)}});
  runtime runtime;
  request what("GET", server.url("/a"));
  for (std::uint64_t offset : {50'000u, 0u, 0u}) {
    what.range = {offset, 10'000};
    EXPECT_EQ(sync_wait(runtime, web.get_part(what)).content().size(), 10'000u);
  }
  auto stats = web.stats();
  EXPECT_EQ(stats.requests, 12u);  // the second part took a request for the whole, which was left
  EXPECT_EQ(stats.retries, 8u);
  EXPECT_EQ(stats.failures, 0u);
}

TEST_F(Urls, OfPartsOfOtherEntitiesAreRefusedHoweverTheyAreAskedFor) {
  std::atomic<bool> ignores = false;  // If-Match
  test::web_server server([&](test::web_request request) {
    if (ignores) request.headers.erase("if-match");
    return test::file_reply(request, std::string(100'000, 'x'));
  });
  runtime runtime;
  for (bool ignored : {false, true}) {
    ignores = ignored;
    for (std::uint64_t offset : {0u, 5u})
      for (std::size_t bytes : {5u, 10'000u})
        EXPECT_THAT(
            [&] { (void)sync_wait(runtime, part_of(server.url("/a"), offset, bytes, "v0")); },
            ThrowsMessage<error>(HasSubstr("the object has changed")));
  }
}

static task<std::size_t> first_bytes_of(client from, std::string url) {
  request what("GET", std::move(url));
  what.range = {0, 8'000};
  auto part = co_await from.get_part(std::move(what));
  co_return part.content().size();
}

TEST_F(Urls, ConcurrentReadsMixShortAndLongObjects) {
  test::web_server server([](auto& request) {
    return test::file_reply(request, large_text(request.target == "/small" ? 5'000 : 50'000));
  });
  client web;
  runtime runtime({.threads = 2, .reactors = 2});
  auto read = [&](int number) {
    return first_bytes_of(web, server.url(number % 2 == 0 ? "/small" : "/long"));
  };
  std::vector<int> numbers(200);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::size_t bytes = 0;
  for (auto& each : runtime.run(from(std::move(numbers)) | map(read, {.concurrency = 32})))
    bytes += each;
  EXPECT_EQ(bytes, 100u * 5'000 + 100u * 8'000);
}

TEST_F(Urls, OfServersWithoutRangesAreReadAgainWhenTheyBreakOff) {
  const auto content = large_text(9'000'000);
  std::atomic<int> count = 0;
  test::web_server server([&](auto&) {
    test::web_reply reply{.headers = {{"ETag", "\"v1\""}}, .body = content};
    if (++count == 1) reply.cut_at = 8'500'000;
    return reply;
  });
  io::mount(server.url("/"), web_store(client({.retry = {.pause = std::chrono::milliseconds(1)}})));
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), content);
  EXPECT_EQ(server.requests(), 3u);
  io::unmount(server.url("/"));
}

// What the server has sent, and how often it was asked.
static std::pair<std::size_t, std::size_t> pass_over(runtime& where,
                                                     const std::vector<sample>& samples,
                                                     const test::web_server& server,
                                                     std::atomic<std::size_t>& sent) {
  auto requests = server.requests();
  auto bytes = sent.load();
  for (auto& got : where.run(from(samples) | map(io::read))) (void)got;
  return {server.requests() - requests, sent - bytes};
}

TEST_F(Urls, BehindADiskCacheAreAskedForOnce) {
  std::atomic<std::size_t> sent = 0;
  test::web_server server([&](auto& request) {
    auto reply = test::file_reply(request, std::string(1000, request.target[1]));
    sent += reply.body.size();
    return reply;
  });
  testing_support::temp_dir dir;
  auto directory = dir / "cache";
  io::mount(server.url("/"), web_store(client()));
  auto cache = io::mount_disk_cache(server.url("/"), {.directory = directory});
  std::vector<sample> samples;
  for (int i = 0; i < 100; ++i) samples.emplace_back(server.url("/" + std::to_string(i)), i);
  runtime runtime;
  EXPECT_THAT(pass_over(runtime, samples, server, sent), Pair(100, 100'000));
  EXPECT_THAT(pass_over(runtime, samples, server, sent), Pair(0, 0));
  EXPECT_EQ(cache->stats().hits, 100u);
  EXPECT_EQ(cache->stats().fetched_bytes, 100'000u);
  io::unmount(server.url("/"));
}

TEST_F(Urls, CachesIgnoreNewSignatures) {
  test::web_server server([&](auto& request) {
    bool is_other = request.target.find("versionId=2") != std::string::npos;
    return test::file_reply(request, is_other ? "other" : "small");
  });
  auto url = [&](const std::string& rest) {
    return server.url("/a?X-Amz-Credential=b&X-Amz-Date=c&X-Amz-Signature=" + rest);
  };
  testing_support::temp_dir dir;
  auto directory = dir / "cache";
  runtime runtime;
  for (bool on_disk : {true, false}) {
    io::mount(server.url("/"), web_store(client()));
    if (on_disk)
      io::mount_disk_cache(server.url("/"), {.directory = directory});
    else
      io::mount_memory_cache(server.url("/"));
    auto before = server.requests();
    EXPECT_EQ(sync_wait(runtime, io::read_file(url("1"))).text(), "small");
    EXPECT_EQ(sync_wait(runtime, io::read_file(url("2"))).text(), "small");
    EXPECT_TRUE(sync_wait(runtime, io::try_open(url("3"))));
    EXPECT_EQ(sync_wait(runtime, io::read_file(url("1&versionId=2"))).text(), "other");
    EXPECT_EQ(server.requests() - before, 2u);
  }
  io::unmount(server.url("/"));
}

TEST_F(Urls, BehindADiskCacheAreFetchedInBlocksOfOneEntity) {
  const auto content = large_text(100'000);
  std::atomic<bool> has_changed = false;
  test::web_server server([&](auto& request) {
    return test::file_reply(request, content, has_changed ? "\"v2\"" : "\"v1\"");
  });
  testing_support::temp_dir dir;
  auto directory = dir / "cache";
  io::mount(server.url("/"), web_store(client()));
  io::mount_disk_cache(server.url("/"), {.directory = directory, .block_bytes = 40'000});
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), content);
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), content);
  EXPECT_THAT(ranges_seen(server),
              ElementsAre("", "bytes=0-39999", "bytes=40000-79999", "bytes=80000-119999"));
  auto part = [](std::string url) -> task<buffer> {
    auto from = co_await io::open(std::move(url));
    co_return co_await from.read_at(0, 10);
  };
  EXPECT_EQ(sync_wait(runtime, part(server.url("/b"))).text(), content.substr(0, 10));
  has_changed = true;
  EXPECT_THAT([&] { (void)sync_wait(runtime, io::read_file(server.url("/b"))); },
              ThrowsMessage<error>(HasSubstr("the object has changed since a part of it")));
  EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/b"))).text(), content);
  EXPECT_FALSE(sync_wait(runtime, io::try_open(server.url("/b"))) == std::nullopt);
  io::unmount(server.url("/"));
}

TEST_F(Urls, BehindCachesAreComparedWithTheirChecksums) {
  const std::string content = "a whole object";
  crc32c sum;
  sum.update(std::as_bytes(std::span(content)));
  auto value = sum.value();
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  std::atomic<int> requests = 0;
  test::web_server server([&](auto& request) {
    auto reply = test::file_reply(request, content);
    reply.headers.emplace_back("x-amz-checksum-crc32c", base64_of(bytes));
    if (requests++ % 2 == 0) reply.body[3] ^= 1;
    return reply;
  });
  testing_support::temp_dir dir;
  auto directory = dir / "cache";
  auto quick = client({.retry = {.pause = std::chrono::milliseconds(1)}});
  runtime runtime;
  for (bool on_disk : {true, false}) {
    io::mount(server.url("/"), web_store(quick));
    if (on_disk)
      io::mount_disk_cache(server.url("/"), {.directory = directory});
    else
      io::mount_memory_cache(server.url("/"));
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(sync_wait(runtime, io::read_file(server.url("/a"))).text(), content);
  }
  EXPECT_EQ(requests, 4);  // one that is damaged, and one that is not, for each cache
  io::unmount(server.url("/"));
}

// Of an object that is longer than a block, all of its response would be sent for nothing.
TEST_F(Urls, ADiskCacheRequestsTheFirstBlockAfterALongObject) {
  test::web_server server([](auto& request) {
    auto bytes = request.target == "/small" ? 30'000u : 100'000u;
    return test::file_reply(request, large_text(bytes));
  });
  testing_support::temp_dir dir;
  auto directory = dir / "cache";
  io::mount(server.url("/"), web_store(client()));
  io::mount_disk_cache(server.url("/"), {.directory = directory, .block_bytes = 60'000});
  runtime runtime;
  for (auto* each : {"/a", "/b", "/small", "/c", "/d"})
    (void)sync_wait(runtime, io::read_file(server.url(each)));
  const std::string first = "bytes=0-59999", second = "bytes=60000-119999";
  EXPECT_THAT(ranges_seen(server),
              testing::UnorderedElementsAre("", first, second,  // nothing is known yet
                                            first, second,      // long, as expected
                                            first, "",          // small: compared as a whole
                                            "", first, second,  // long again
                                            first, second));
  io::unmount(server.url("/"));
}

// The server of a long object sends parts, another one does not.
TEST_F(Urls, ServersWithAndWithoutRangesMayAlternate) {
  test::web_server with_ranges(
      [](auto& request) { return test::file_reply(request, "0123456789"); });
  test::web_server without([](auto&) { return test::web_reply{.body = "0123456789"}; });
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, part_of(with_ranges.url("/a"), 0, 3, "")).content().text(), "012");
  EXPECT_EQ(sync_wait(runtime, part_of(without.url("/a"), 0, 3, "")).content().text(),
            "0123456789");
  EXPECT_EQ(sync_wait(runtime, part_of(with_ranges.url("/a"), 0, 3, "")).content().text(), "012");
}

TEST_F(Urls, BehindADiskCacheTheirReadersHaveTheEntityTag) {
  test::web_server server([](auto& request) { return test::file_reply(request, "small"); });
  testing_support::temp_dir dir;
  auto directory = dir / "cache";
  io::mount_disk_cache(server.url("/"), {.directory = directory});
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, io::open_reader(server.url("/a")))->etag(), "v1");
  EXPECT_THAT([&] { io::mount_disk_cache(server.url("/"), {.directory = directory}); },
              ThrowsMessage<error>(HasSubstr("is already a cache in")));
  io::unmount(server.url("/"));
}

TEST_F(Urls, ThatAreAbsentAreAbsentBehindACache) {
  test::web_server server([](auto&) { return test::web_reply{.status = 404, .body = "none"}; });
  io::mount_memory_cache(server.url("/"));
  runtime runtime;
  EXPECT_FALSE(sync_wait(runtime, io::try_open(server.url("/a"))));
  EXPECT_THAT([&] { (void)sync_wait(runtime, io::read_file(server.url("/a"))); },
              ThrowsMessage<error>(HasSubstr("404 Not Found")));
  io::unmount(server.url("/"));
}

}  // namespace lade::io::http::urls_test
