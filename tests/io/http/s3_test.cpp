#include "../../../io/http/s3_listing.hpp"
#include "../../../io/http/s3_state.hpp"
#include "../../../io/http/sigv4.hpp"

#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/from.hpp>
#include <lade/io/disk_cache.hpp>
#include <lade/io/file.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../support/temp_dir.hpp"
#include "../../support/web_server.hpp"

namespace lade::io::http::s3_test {

using test::web_reply;
using test::web_request;
using test::web_server;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

static task<s3_credentials> some_keys() { co_return s3_credentials("id", "secret"); }

// A store with the objects of one bucket, for path style, which does not look at signatures.
class bucket_server {
 public:
  bucket_server() : server_([this](auto& request) { return answer(request); }) {}

  std::string endpoint() const { return server_.url(""); }
  std::vector<web_request> seen() const { return server_.seen(); }

  std::map<std::string, std::string> objects;
  std::size_t page_size = 1000;

 private:
  web_reply answer(const web_request& request) {
    auto question = request.target.find('?');
    if (question != std::string::npos) return page(request.target.substr(question));
    auto key = request.target.substr(std::string("/bucket/").size());
    if (request.method == "PUT") {
      std::lock_guard lock(mutex_);
      objects[key] = request.body;
      return {};
    }
    std::lock_guard lock(mutex_);
    auto found = objects.find(key);
    if (found == objects.end())
      return {.status = 404,
              .body =
                  "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>The key does "
                  "not exist.</Message></Error>"};
    return test::file_reply(request, found->second);
  }

  static std::string value(const std::string& query, const std::string& name) {
    auto begin = query.find(name + "=");
    if (begin == std::string::npos) return {};
    begin += name.size() + 1;
    auto text = query.substr(begin, query.find('&', begin) - begin);
    for (auto slash = text.find("%2F"); slash != std::string::npos; slash = text.find("%2F"))
      text.replace(slash, 3, "/");
    return text;
  }

  web_reply page(const std::string& query) {
    auto prefix = value(query, "prefix");
    auto after = value(query, "continuation-token");
    std::string xml = "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType>";
    std::size_t count = 0;
    std::string last;
    std::lock_guard lock(mutex_);
    for (auto& [key, content] : objects) {
      if (!key.starts_with(prefix) || key <= after) continue;
      if (count++ == page_size) {
        xml += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + last +
               "</NextContinuationToken>";
        break;
      }
      last = key;
      xml += "<Contents><Key>" + key + "</Key><ETag>&quot;v1&quot;</ETag><Size>" +
             std::to_string(content.size()) + "</Size></Contents>";
    }
    if (count <= page_size) xml += "<IsTruncated>false</IsTruncated>";
    return {.body = xml + "</ListBucketResult>"};
  }

  std::mutex mutex_;
  web_server server_;
};

static task<std::vector<std::string>> names_of(async_generator<object_info> listing) {
  std::vector<std::string> names;
  while (auto* each = co_await listing.next())
    names.push_back(each->name + " " + std::to_string(each->size_bytes) + " " + each->etag);
  co_return names;
}

TEST(S3, ReadsAndWritesObjectsBySignedRequests) {
  bucket_server server;
  server.objects["a/b%20c"] = "content";
  runtime runtime;
  s3_store store({.endpoint = server.endpoint()}, client(), some_keys);
  EXPECT_EQ(sync_wait(runtime, store.read("s3://bucket/a/b c")).text(), "content");
  EXPECT_EQ(sync_wait(runtime, store.get("s3://bucket/a/b c", {3, 2})).body().text(), "te");
  EXPECT_EQ(sync_wait(runtime, store.head("s3://bucket/a/b c")).object_bytes(), 7u);
  EXPECT_EQ(sync_wait(runtime, store.put("s3://bucket/new", buffer(5))).status(), 200);
  EXPECT_EQ(server.objects["new"].size(), 5u);
  for (auto& request : server.seen())
    EXPECT_THAT(request.headers.at("authorization"), HasSubstr("AWS4-HMAC-SHA256 Credential=id/"));
}

TEST(S3, BehindTheEndOfAnObjectIsAnEmptyPart) {
  bucket_server server;
  server.objects["a"] = "content";
  runtime runtime;
  s3_store store({.endpoint = server.endpoint()}, client(), some_keys);
  for (std::uint64_t offset : {std::uint64_t{7}, std::uint64_t{1} << 40}) {
    auto part = sync_wait(runtime, store.read_part("s3://bucket/a", offset, 5, "v1"));
    EXPECT_EQ(part.content().size(), 0u);
    EXPECT_EQ(part.object_bytes(), 7u);
    EXPECT_EQ(part.etag(), "v1");
  }
  EXPECT_THAT([&] { (void)sync_wait(runtime, store.read_part("s3://bucket/a", 7, 5, "v0")); },
              ThrowsMessage<error>(HasSubstr("the object has changed")));
}

TEST(S3, ListsPageByPage) {
  bucket_server server;
  server.page_size = 2;
  for (auto* key : {"a/1", "a/2", "a/3", "a/4", "a/5", "b/1"}) server.objects[key] = key;
  runtime runtime;
  s3_store store({.endpoint = server.endpoint()}, client(), some_keys);
  EXPECT_THAT(sync_wait(runtime, names_of(store.list("s3://bucket/a/"))),
              ElementsAre("s3://bucket/a/1 3 v1", "s3://bucket/a/2 3 v1", "s3://bucket/a/3 3 v1",
                          "s3://bucket/a/4 3 v1", "s3://bucket/a/5 3 v1"));
  EXPECT_EQ(server.seen().size(), 3u);
}

TEST(S3, AListingThatRepeatsAPageIsAnError) {
  web_server server([](auto&) {
    return web_reply{.body =
                         "<ListBucketResult><IsTruncated>true</IsTruncated>"
                         "<NextContinuationToken>x</NextContinuationToken></ListBucketResult>"};
  });
  runtime runtime;
  s3_store store({.endpoint = server.url(""), .anonymous = true});
  EXPECT_THAT([&] { (void)sync_wait(runtime, names_of(store.list("s3://bucket/a/"))); },
              ThrowsMessage<error>("list s3://bucket/a/: the server repeats a page"));
}

TEST(S3, AListingInNoOrderOrOfOtherObjectsIsAnError) {
  std::vector<std::string> keys;
  web_server server([&](auto&) {
    std::string xml = "<ListBucketResult><IsTruncated>false</IsTruncated>";
    for (auto& key : keys) xml += "<Contents><Key>" + key + "</Key><Size>1</Size></Contents>";
    return web_reply{.body = xml + "</ListBucketResult>"};
  });
  runtime runtime;
  s3_store store({.endpoint = server.url(""), .anonymous = true});
  auto refused = [&](std::vector<std::string> listed, const std::string& why) {
    keys = std::move(listed);
    EXPECT_THAT([&] { (void)sync_wait(runtime, names_of(store.list("s3://bucket/a/"))); },
                ThrowsMessage<error>("list s3://bucket/a/: the server lists " + why));
  };
  refused({"a/2", "a/1"}, "a/1 behind a/2, in no order or twice");
  refused({"a/1", "a/1"}, "a/1 behind a/1, in no order or twice");
  refused({"a/1", "b"}, "b too");
}

TEST(S3, AListingOfAnyLengthIsNotReceived) {
  web_server server([](auto&) {
    return web_reply{.body = std::string((16u << 20) + 1, ' '), .says_length = false};
  });
  runtime runtime;
  s3_store store({.endpoint = server.url(""), .anonymous = true});
  EXPECT_THAT([&] { (void)sync_wait(runtime, names_of(store.list("s3://bucket/a/"))); },
              ThrowsMessage<error>(HasSubstr("the body is longer than max_bytes, 16777216")));
}

TEST(S3, AListingThatIsCutOffIsAnError) {
  web_server server([](auto&) {
    return web_reply{.body =
                         "<ListBucketResult><IsTruncated>false</IsTruncated>"
                         "<Contents><Key>a/1</Key><Size>1</Size></Contents>"};
  });
  runtime runtime;
  s3_store store({.endpoint = server.url(""), .anonymous = true});
  EXPECT_THAT([&] { (void)sync_wait(runtime, names_of(store.list("s3://bucket/a/"))); },
              ThrowsMessage<error>(HasSubstr("no end of <ListBucketResult>")));
}

TEST(S3, AnAbsentObjectIsNamedByItsUrl) {
  bucket_server server;
  runtime runtime;
  s3_store store({.endpoint = server.endpoint()}, client(), some_keys);
  EXPECT_THAT(
      [&] { (void)sync_wait(runtime, store.read("s3://bucket/a")); },
      ThrowsMessage<error>(HasSubstr("/bucket/a: 404 Not Found: NoSuchKey, The key does not "
                                     "exist. (attempt 1 of 5)")));
  EXPECT_EQ(sync_wait(runtime, store.open("s3://bucket/a", true)), nullptr);
}

TEST(S3, SendsNoSignatureWhenAnonymous) {
  bucket_server server;
  server.objects["a"] = "content";
  runtime runtime;
  s3_store store({.endpoint = server.endpoint(), .anonymous = true, .requester_pays = true});
  EXPECT_EQ(sync_wait(runtime, store.read("s3://bucket/a")).text(), "content");
  EXPECT_EQ(server.seen().at(0).headers.count("authorization"), 0u);
  EXPECT_EQ(server.seen().at(0).headers["x-amz-request-payer"], "requester");
}

static task<> read_many(const s3_store& store, int count) {
  scope children(co_await this_context());
  for (int i = 0; i < count; ++i) children.start(store.read("s3://bucket/a"));
  co_await children.join();
}

TEST(S3, OneRequestGetsNewCredentialsForAll) {
  bucket_server server;
  server.objects["a"] = "content";
  runtime runtime;
  auto calls = std::make_shared<std::atomic<int>>(0);
  auto expiring = [calls]() -> task<s3_credentials> {
    return [](auto count) -> task<s3_credentials> {
      ++*count;
      co_return s3_credentials("id", "secret", "token",
                               std::chrono::system_clock::now() + std::chrono::hours(1));
    }(calls);
  };
  s3_store store({.endpoint = server.endpoint()}, client(), expiring);
  sync_wait(runtime, read_many(store, 50));
  EXPECT_EQ(*calls, 1);
  EXPECT_EQ(server.seen().at(0).headers["x-amz-security-token"], "token");
}

TEST(S3, CredentialsThatCannotBeFoundAreAnErrorForAll) {
  bucket_server server;
  runtime runtime;
  s3_store store({.endpoint = server.endpoint()}, client(), []() -> task<s3_credentials> {
    throw error(errc::failed, "ask for credentials", "no role");
    co_return s3_credentials("", "");
  });
  EXPECT_THAT([&] { sync_wait(runtime, read_many(store, 20)); },
              ThrowsMessage<error>(HasSubstr("ask for credentials: no role")));
}

// Accepts uploads in parts, and fails as its members state.
class upload_server {
 public:
  std::string endpoint() const { return server_.url(""); }
  std::vector<web_request> seen() const { return server_.seen(); }

  std::atomic<int> refusals_of_parts = 0;  // 503, for so many requests
  std::atomic<int> lost_at_begin = 0;      // the upload starts, but the answer is lost
  std::atomic<int> failures_at_end = 0;    // 200 with an error
  std::atomic<int> lost_at_end = 0;        // made, but the answer does not come
  std::atomic<bool> aborts_fail = false;
  std::atomic<int> parts_after_end = 0;  // stored behind so many ends of an upload
  std::string error_at_end = "InternalError";
  int denied_part = 0;
  std::function<void(int number)> at_part = [](int) {};
  std::function<void()> at_abort = [] {};

  std::string object() const {
    std::lock_guard lock(mutex_);
    return object_;
  }
  std::size_t open_uploads() const {
    std::lock_guard lock(mutex_);
    return is_open_ ? 1 : 0;
  }

 private:
  static web_reply refusal(int status, const std::string& code) {
    return {.status = status,
            .body = "<Error><Code>" + code + "</Code><Message>No</Message></Error>"};
  }

  web_reply answer(const web_request& request) {
    auto query = request.target.substr(std::min(request.target.find('?'), request.target.size()));
    if (request.method == "HEAD") return {.headers = {{"ETag", '"' + tag() + '"'}}};
    if (request.method == "PUT" && query.empty()) {
      std::lock_guard lock(mutex_);
      object_ = request.body;
      return {.headers = {{"ETag", "\"single\""}}};
    }
    if (query == "?uploads") {
      std::lock_guard lock(mutex_);
      is_open_ = true;
      if (lost_at_begin-- > 0) return {.resets = true};
      return {.body =
                  "<InitiateMultipartUploadResult><UploadId>a/b&amp;c</UploadId>"
                  "</InitiateMultipartUploadResult>"};
    }
    EXPECT_THAT(query, HasSubstr("uploadId=a%2Fb%26c"));
    if (request.method == "PUT") return take_part(request, query);
    if (request.method == "DELETE") {
      if (aborts_fail) return refusal(403, "AccessDenied");
      at_abort();
      std::lock_guard lock(mutex_);
      is_open_ = parts_after_end-- > 0;
      return {.status = 204};
    }
    if (request.method == "GET") return parts_list();
    return complete(request);
  }

  web_reply parts_list() {
    std::lock_guard lock(mutex_);
    if (!is_open_) return refusal(404, "NoSuchUpload");
    return {.body = "<ListPartsResult><Part><PartNumber>1</PartNumber></Part></ListPartsResult>"};
  }

  web_reply take_part(const web_request& request, const std::string& query) {
    auto number = std::stoi(query.substr(query.find("partNumber=") + 11));
    at_part(number);
    if (number == denied_part) return refusal(403, "AccessDenied");
    if (refusals_of_parts-- > 0) return refusal(503, "SlowDown");
    std::lock_guard lock(mutex_);
    parts_[number] = request.body;
    return {
        .headers = {{"ETag", "\"0000000000000000000000000000000" + std::to_string(number) + "\""}}};
  }

  web_reply complete(const web_request& request) {
    if (failures_at_end-- > 0) return refusal(200, error_at_end);
    std::lock_guard lock(mutex_);
    if (!is_open_) return refusal(404, "NoSuchUpload");
    for (auto& [number, content] : parts_) {
      EXPECT_THAT(request.body, HasSubstr("<PartNumber>" + std::to_string(number) +
                                          "</PartNumber><ETag>&quot;000"));
      object_ += content;
    }
    is_open_ = false;
    if (lost_at_end-- > 0) return {.resets = true};
    return {.body = "<CompleteMultipartUploadResult><ETag>&quot;" + tag() +
                    "&quot;</ETag></CompleteMultipartUploadResult>"};
  }

  // As of three parts.
  static std::string tag() {
    const std::vector<std::string> tags{"00000000000000000000000000000001",
                                        "00000000000000000000000000000002",
                                        "00000000000000000000000000000003"};
    return multipart_tag(tags);
  }

  mutable std::mutex mutex_;
  bool is_open_ = false;  // guarded by mutex_, as is all that follows
  std::map<int, std::string> parts_;
  std::string object_;
  web_server server_{[this](auto& request) { return answer(request); }};
};

static constexpr std::size_t mebibyte = std::size_t{1} << 20;

static buffer pattern(std::size_t bytes) {
  buffer made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made.data()[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  return made;
}

static async_generator<buffer> pieces(buffer content, std::size_t bytes) {
  for (std::size_t at = 0; at < content.size(); at += bytes) {
    auto piece = content.slice(at, std::min(bytes, content.size() - at));
    co_yield piece;
  }
}

static client impatient_client() {
  client_options options;
  options.retry.pause = std::chrono::milliseconds(1);
  return client(options);
}

static s3_store store_at(const std::string& endpoint) {
  return s3_store({.endpoint = endpoint, .region = "a"}, impatient_client(), some_keys);
}

TEST(S3, UploadsInPartsThatAreTriedAgain) {
  upload_server server;
  server.refusals_of_parts = 3;
  server.failures_at_end = 2;
  runtime runtime;
  auto content = pattern(11 * mebibyte);
  auto made = sync_wait(runtime, store_at(server.endpoint())
                                     .upload("s3://bucket/a", pieces(content, 400'000),
                                             {.part_bytes = 5 * mebibyte}));
  EXPECT_TRUE(server.object() == content.text());
  EXPECT_EQ(made.name, "s3://bucket/a");
  EXPECT_EQ(made.size_bytes, content.size());
  EXPECT_THAT(made.etag, testing::EndsWith("-3"));
  EXPECT_EQ(server.open_uploads(), 0u);
}

TEST(S3, AnUploadWhoseLastAnswerIsLostHasSucceeded) {
  upload_server server;
  server.lost_at_end = 1;
  runtime runtime;
  auto made = sync_wait(
      runtime, store_at(server.endpoint())
                   .upload("s3://bucket/a", pattern(11 * mebibyte), {.part_bytes = 5 * mebibyte}));
  EXPECT_THAT(made.etag, testing::EndsWith("-3"));
  EXPECT_EQ(server.object().size(), 11 * mebibyte);
}

TEST(S3, AnUploadWhoseFirstAnswerIsLostSucceedsAndTouchesNoOther) {
  upload_server server;
  server.lost_at_begin = 1;
  runtime runtime;
  auto content = pattern(11 * mebibyte);
  (void)sync_wait(
      runtime,
      store_at(server.endpoint()).upload("s3://bucket/a", content, {.part_bytes = 5 * mebibyte}));
  EXPECT_TRUE(server.object() == content.text());
  std::size_t uploads = 0;
  for (auto& request : server.seen()) {
    uploads += request.target.ends_with("?uploads");
    EXPECT_NE(request.method, "DELETE");
  }
  EXPECT_EQ(uploads, 2u);
}

TEST(S3, AnUploadWhoseFirstAnswersAreAllLostSaysWhatMayBeLeft) {
  upload_server server;
  server.lost_at_begin = 1'000'000;
  runtime runtime;
  EXPECT_THAT(
      [&] {
        (void)sync_wait(runtime, store_at(server.endpoint())
                                     .upload("s3://bucket/a", pattern(11 * mebibyte),
                                             {.part_bytes = 5 * mebibyte}));
      },
      ThrowsMessage<error>(AllOf(HasSubstr("/bucket/a?uploads: "), HasSubstr("(attempt 5 of 5)"),
                                 HasSubstr("the server may keep an upload without parts"))));
}

TEST(S3, WhatFitsIntoAPartIsUploadedByOneRequest) {
  upload_server server;
  runtime runtime;
  auto store = store_at(server.endpoint());
  auto content = pattern(5 * mebibyte);
  auto made = sync_wait(runtime, store.upload("s3://bucket/a", pieces(content, mebibyte),
                                              {.part_bytes = 5 * mebibyte}));
  EXPECT_EQ(made.etag, "single");
  EXPECT_TRUE(server.object() == content.text());
  EXPECT_EQ(sync_wait(runtime, store.upload("s3://bucket/a", buffer())).size_bytes, 0u);
  EXPECT_EQ(server.seen().size(), 2u);
}

TEST(S3, AnUploadThatFailsLeavesNothing) {
  upload_server server;
  server.refusals_of_parts = 1'000'000;
  runtime runtime;
  auto store = store_at(server.endpoint());
  auto upload = [&] {
    (void)sync_wait(runtime, store.upload("s3://bucket/a", pattern(11 * mebibyte),
                                          {.part_bytes = 5 * mebibyte, .concurrency = 1}));
  };
  EXPECT_THAT(upload, ThrowsMessage<error>(HasSubstr("503 Service Unavailable: SlowDown, No "
                                                     "(attempt 5 of 5)")));
  EXPECT_EQ(server.open_uploads(), 0u);
  server.aborts_fail = true;
  EXPECT_THAT(upload,
              ThrowsMessage<error>(AllOf(HasSubstr("503 Service Unavailable"),
                                         HasSubstr("and its parts may still be on the server: "
                                                   "delete http"),
                                         HasSubstr("AccessDenied"))));
}

TEST(S3, AnUploadThatFailsEndsUntilTheServerHasNoPartsOfIt) {
  upload_server server;
  server.denied_part = 2;
  server.parts_after_end = 2;
  runtime runtime;
  auto store = store_at(server.endpoint());
  EXPECT_THAT(
      [&] {
        (void)sync_wait(runtime, store.upload("s3://bucket/a", pattern(11 * mebibyte),
                                              {.part_bytes = 5 * mebibyte}));
      },
      ThrowsMessage<error>(AllOf(HasSubstr("403 Forbidden: AccessDenied"),
                                 Not(HasSubstr("may still be on the server")))));
  EXPECT_EQ(server.open_uploads(), 0u);
  EXPECT_EQ(std::ranges::count(server.seen(), "DELETE", &web_request::method), 3);
}

// A part is refused after another one has arrived. The answer to that one waits for the end of the
// upload, but not for ever.
TEST(S3, AnUploadThatFailsEndsBehindThePartsThatAreOnTheirWay) {
  upload_server server;
  server.denied_part = 2;
  std::latch is_on_its_way(1);
  std::promise<void> abort;
  server.at_abort = [&] { abort.set_value(); };
  server.at_part = [&, ended = abort.get_future().share()](int number) {
    if (number == 2) is_on_its_way.wait();
    if (number != 1) return;
    is_on_its_way.count_down();
    EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  };
  runtime runtime;
  auto store = store_at(server.endpoint());
  EXPECT_THAT(
      [&] {
        (void)sync_wait(runtime, store.upload("s3://bucket/a", pattern(10 * mebibyte),
                                              {.part_bytes = 5 * mebibyte}));
      },
      ThrowsMessage<error>(HasSubstr("403 Forbidden: AccessDenied")));
  EXPECT_EQ(server.open_uploads(), 0u);
}

// Some content, and then none for ever.
static async_generator<buffer> endless(buffer content, event& never) {
  co_yield content;
  co_await never;
}

TEST(S3, AnUploadThatFailsDoesNotWaitForItsContent) {
  upload_server server;
  server.refusals_of_parts = 1'000'000;
  runtime runtime;
  event never;
  auto store = store_at(server.endpoint());
  EXPECT_THAT(
      [&] {
        (void)sync_wait(runtime,
                        store.upload("s3://bucket/a", endless(pattern(11 * mebibyte), never),
                                     {.part_bytes = 5 * mebibyte}));
      },
      ThrowsMessage<error>(HasSubstr("503 Service Unavailable")));
  EXPECT_EQ(server.open_uploads(), 0u);
}

static async_generator<buffer> failing_content(buffer content) {
  co_yield content;
  throw std::runtime_error("no more content");
}

TEST(S3, AnUploadWhoseContentFailsLeavesNothing) {
  upload_server server;
  server.refusals_of_parts = 1'000'000;
  runtime runtime;
  s3_store store({.endpoint = server.endpoint(), .region = "a"}, client(), some_keys);
  EXPECT_THAT(
      [&] {
        (void)sync_wait(runtime,
                        store.upload("s3://bucket/a", failing_content(pattern(11 * mebibyte)),
                                     {.part_bytes = 5 * mebibyte}));
      },
      ThrowsMessage<std::runtime_error>("no more content"));
  EXPECT_EQ(server.open_uploads(), 0u);
}

TEST(S3, AnUploadThatTheServerRefusesToCompleteIsAnError) {
  upload_server server;
  server.failures_at_end = 1;
  server.error_at_end = "InvalidPart";
  runtime runtime;
  auto store = store_at(server.endpoint());
  auto upload = [&] {
    (void)sync_wait(runtime, store.upload("s3://bucket/a", pattern(11 * mebibyte),
                                          {.part_bytes = 5 * mebibyte}));
  };
  EXPECT_THAT(upload, ThrowsMessage<error>("upload s3://bucket/a: InvalidPart, No"));
  EXPECT_EQ(server.open_uploads(), 0u);
  EXPECT_EQ(server.object(), "");
}

static task<> stop_an_upload(const s3_store& store, event& at_part) {
  scope uploads(co_await this_context());
  uploads.start(
      store.upload("s3://bucket/a", pattern(11 * mebibyte), {.part_bytes = 5 * mebibyte}));
  co_await at_part;
  uploads.stop();
  co_await uploads.join();
}

TEST(S3, AnUploadThatIsStoppedLeavesNothing) {
  event at_part;  // set by the server's threads
  upload_server server;
  server.refusals_of_parts = 1'000'000;
  server.at_part = [&](int) { at_part.set(); };
  runtime runtime;
  auto store = store_at(server.endpoint());
  try {
    sync_wait(runtime, stop_an_upload(store, at_part));
    ADD_FAILURE() << "it was not stopped";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::stopped) << failure.what();
  }
  EXPECT_EQ(server.open_uploads(), 0u);
}

TEST(S3, OptionsOfUploadsThatCannotWorkAreNamed) {
  runtime runtime;
  s3_store store({.endpoint = "http://127.0.0.1:1", .anonymous = true});
  auto refused = [&](s3_upload_options options, const std::string& why) {
    EXPECT_THAT(
        [&] { (void)sync_wait(runtime, store.upload("s3://b/a", pieces(buffer(1), 1), options)); },
        ThrowsMessage<error>("upload s3://b/a: " + why));
  };
  refused({.part_bytes = 5 * mebibyte - 1}, "part_bytes must be from 5 MiB to 5 GiB");
  refused({.part_bytes = (std::size_t{5} << 30) + 1}, "part_bytes must be from 5 MiB to 5 GiB");
  refused({.concurrency = 0}, "concurrency must be from 1 to 10,000");
  refused({.object_bytes = std::uint64_t{1} << 46},
          "object_bytes is more than 10,000 parts can hold");
}

TEST(S3, BucketsAreInTheHostOrInThePath) {
  auto url = [](s3_location where, const char* name) {
    return where.http_url(s3_name(name), "a=b");
  };
  EXPECT_EQ(url(s3_location("eu-west-1", "", {}), "s3://bucket/a b/+"),
            "https://bucket.s3.eu-west-1.amazonaws.com/a%20b/%2B?a=b");
  EXPECT_EQ(url(s3_location("eu-west-1", "", {}), "s3://my.bucket/a"),
            "https://s3.eu-west-1.amazonaws.com/my.bucket/a?a=b");
  EXPECT_EQ(url(s3_location("cn-north-1", "", true), "s3://bucket/a"),
            "https://s3.cn-north-1.amazonaws.com.cn/bucket/a?a=b");
  EXPECT_EQ(url(s3_location("a", "https://host:443/", {}), "s3://bucket/a"),
            "https://host/bucket/a?a=b");
  EXPECT_EQ(url(s3_location("a", "http://host:9000", false), "s3://bucket/a"),
            "http://bucket.host:9000/a?a=b");
}

TEST(S3, AsksForChecksumsOfWholeObjects) {
  bucket_server server;
  server.objects["a"] = "content";
  runtime runtime;
  s3_store store({.endpoint = server.endpoint()}, client(), some_keys);
  (void)sync_wait(runtime, store.read("s3://bucket/a"));
  (void)sync_wait(runtime, store.get("s3://bucket/a", {1, 2}));
  auto seen = server.seen();
  EXPECT_EQ(seen.at(0).headers["x-amz-checksum-mode"], "ENABLED");
  EXPECT_THAT(seen.at(0).headers["authorization"], HasSubstr("x-amz-checksum-mode;"));
  EXPECT_EQ(seen.at(1).headers.count("x-amz-checksum-mode"), 0u);
}

static task<buffer> read_byte(std::shared_ptr<const byte_reader> from, int number) {
  co_return co_await from->read_at(static_cast<std::uint64_t>(number), 1);
}

TEST(S3, AReaderMayBeReadOnSeveralReactors) {
  web_server server([](auto& request) { return test::file_reply(request, std::string(500, 'x')); });
  runtime runtime({.threads = 2, .reactors = 4});
  s3_store store({.endpoint = server.url("")}, client(), some_keys);
  auto object = sync_wait(runtime, store.open("s3://bucket/key", false));
  std::vector<int> numbers(500);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto bytes = from(std::move(numbers)) |
               map([object](int number) { return read_byte(object, number); }, {.concurrency = 64});
  std::size_t count = 0;
  for (auto& each : runtime.run(bytes)) count += each.text() == "x";
  EXPECT_EQ(count, 500u);
}

TEST(S3, InvalidNamesAreRefusedWithoutTheirSecrets) {
  runtime other;
  s3_store anywhere({.endpoint = "http://127.0.0.1:1"}, client(), some_keys);
  EXPECT_THAT([&] { (void)sync_wait(other, anywhere.read("s3://KEY:SECRET@bucket/key")); },
              ThrowsMessage<error>(Not(HasSubstr("SECRET"))));
}

TEST(S3, BucketsOfTheSameNameAtTwoEndpointsAreCachedByThemselves) {
  bucket_server one, other;
  one.objects["a"] = "content";
  other.objects["a"] = "other content";
  testing_support::temp_dir dir;
  auto directory = dir / "cache";
  runtime runtime;
  for (int i = 0; i < 2; ++i)
    for (auto* each : {&one, &other}) {
      auto store = std::make_shared<s3_store>(
          s3_options{.endpoint = each->endpoint(), .region = "here"}, client(), some_keys);
      disk_cache cache(store, {.directory = directory});
      EXPECT_EQ(sync_wait(runtime, cache.read("s3://bucket/a")).text(), each->objects["a"]);
    }
  EXPECT_EQ(one.seen().size(), 1u);
  EXPECT_EQ(other.seen().size(), 1u);
}

TEST(S3, GoogleCloudStorageIsReadAndListedByTheSameRequests) {
  bucket_server server;
  server.objects["train/a.jpg"] = "content";
  runtime runtime;
  s3_store store({.endpoint = server.endpoint(), .region = "auto", .path_style = true}, client(),
                 some_keys);
  EXPECT_EQ(sync_wait(runtime, store.read("gs://bucket/train/a.jpg")).text(), "content");
  EXPECT_THAT(sync_wait(runtime, names_of(store.list("gs://bucket/train/"))),
              ElementsAre("gs://bucket/train/a.jpg 7 v1"));
  for (auto& request : server.seen())
    EXPECT_THAT(request.headers.at("authorization"), HasSubstr("/auto/s3/aws4_request"));
  EXPECT_THAT([&] { (void)sync_wait(runtime, store.read("gs://bucket/none")); },
              ThrowsMessage<error>(HasSubstr("/bucket/none: 404 Not Found: NoSuchKey")));
}

TEST(S3, ItsIdentityIsItsEndpoint) {
  runtime runtime;
  auto identity = [&](const s3_options& options) {
    return sync_wait(runtime, s3_store(options, client(), some_keys).identity());
  };
  EXPECT_EQ(identity({.endpoint = "https://host.example:443/", .region = "here"}),
            "https://host.example");
  EXPECT_EQ(identity({.endpoint = "https://host.example", .region = "there"}),
            "https://host.example");
}

TEST(S3, InvalidNamesAreRefused) {
  runtime runtime;
  s3_store store({.endpoint = "http://127.0.0.1:1", .anonymous = true});
  for (auto* url : {"s3://", "s3:///key", "bucket/key", "s3://user@bucket/key"})
    EXPECT_THAT([&] { (void)sync_wait(runtime, store.read(url)); },
                ThrowsMessage<error>(HasSubstr("no s3://bucket/key")));
  EXPECT_THAT([] { s3_store({.endpoint = "here"}); },
              ThrowsMessage<error>(HasSubstr("not a URL of http or https")));
  for (auto* endpoint : {"http://h/?x=1", "http://h?", "http://h#f", "http://user:SECRET@h"})
    EXPECT_THAT([&] { s3_store({.endpoint = endpoint}); },
                ThrowsMessage<error>(AllOf(HasSubstr("has a query, a fragment or user information"),
                                           Not(HasSubstr("SECRET")))));
  EXPECT_THAT([] { s3_store({.region = "eu west/1\n"}); },
              ThrowsMessage<error>("make an S3 store: 'eu west/1\\n' is no name of a region"));
}

static task<std::size_t> size_of(async_generator<buffer> chunks) {
  std::size_t bytes = 0;
  while (auto* chunk = co_await chunks.next()) bytes += chunk->size();
  co_return bytes;
}

template <class Work>
static void refuses_to_act_on_a_bucket(const std::string& what, Work act) {
  for (auto* url : {"s3://bucket/", "s3://bucket"}) {
    SCOPED_TRACE(what);
    auto expected = what + " " + url + ": no key after the bucket";
    EXPECT_THAT([&] { act(url); }, ThrowsMessage<error>(expected));
  }
}

TEST(S3, OnlyListTakesAUrlWithoutAKey) {
  bucket_server server;
  server.objects["a"] = "content";
  runtime runtime;
  s3_store store({.endpoint = server.endpoint()}, client(), some_keys);
  auto refused = [&](const std::string& what, auto act) {
    refuses_to_act_on_a_bucket(what, [&](std::string url) { (void)sync_wait(runtime, act(url)); });
  };
  refused("get", [&](auto url) { return store.read(url); });
  refused("get", [&](auto url) { return store.get(url); });
  refused("get", [&](auto url) { return store.open(url, true); });
  refused("get", [&](auto url) { return store.read_part(url, 0, 1, ""); });
  refused("get", [&](auto url) { return size_of(store.stream(url, {})); });
  refused("head", [&](auto url) { return store.head(url); });
  refused("put", [&](auto url) { return store.put(url, buffer(1)); });
  refused("delete", [&](auto url) { return store.remove(url); });
  refused("upload", [&](auto url) { return store.upload(url, buffer(1)); });
  EXPECT_TRUE(server.seen().empty());
  for (auto* url : {"s3://bucket/", "s3://bucket"})
    EXPECT_THAT(sync_wait(runtime, names_of(store.list(url))), ElementsAre("s3://bucket/a 7 v1"));
}

TEST(S3Listing, IsReadWithItsEscapes) {
  auto page = parse_listed_page(
      "<ListBucketResult xmlns=\"a\"><EncodingType>url</EncodingType>"
      "<IsTruncated>false</IsTruncated><Contents><Key>a%2Bb+%26amp;</Key><Size>12</"
      "Size><ETag>\"x&amp;y\"</ETag></Contents></ListBucketResult>",
      "list s3://bucket/");
  ASSERT_EQ(page.keys.size(), 1u);
  EXPECT_EQ(page.keys[0].key, "a+b &amp;");
  EXPECT_EQ(page.keys[0].bytes, 12u);
  EXPECT_EQ(page.keys[0].etag, "x&y");
  EXPECT_TRUE(page.next.empty());
}

TEST(S3Listing, ThatIsDamagedIsRefused) {
  auto refused = [](const std::string& xml, const std::string& why) {
    EXPECT_THAT([&] { (void)parse_listed_page(xml, "list s3://bucket/"); },
                ThrowsMessage<error>("list s3://bucket/: " + why));
  };
  auto refused_of = [&](const std::string& content, const std::string& why) {
    refused("<ListBucketResult>" + content + "</ListBucketResult>", why);
  };
  refused("", "no ListBucketResult");
  refused("<ListBucketResult><IsTruncated>false</IsTruncated>", "no end of <ListBucketResult>");
  refused("<ListBucketResult", "no ListBucketResult");
  refused_of("", "no word of whether it is all");
  refused_of("<IsTruncated>maybe</IsTruncated>", "no word of whether it is all");
  const std::string all = "<IsTruncated>false</IsTruncated>";
  refused_of(all + "<Contents>", "no end of <Contents>");
  refused_of(all + "<Contents><Key>a</Key></Contents>", "an object without a key or a size");
  refused_of(all + "<Contents><Key>a</Key><Size>1x</Size></Contents>", "a size that is no number");
  refused_of(all + "<Contents><Key>&nbsp;</Key><Size>1</Size></Contents>",
             "an entity that XML does not have");
  refused_of(
      all + "<EncodingType>url</EncodingType><Contents><Key>%4</Key><Size>1</Size></Contents>",
      "a key that is not encoded as requested");
  refused_of("<IsTruncated>true</IsTruncated>", "it is truncated, and has no continuation token");
}

}  // namespace lade::io::http::s3_test
