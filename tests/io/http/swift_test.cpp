// The S3 client against an object store that is not ours.

#include "../../../io/http/sigv4.hpp"

#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/map.hpp>
#include <lade/random.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>
#include <lade/when_all.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../support/fault_proxy.hpp"
#include "../../support/python_server.hpp"
#include "../../support/seed.hpp"

namespace lade::io::http::swift_test {

using testing::AnyOf;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

static constexpr const char* swift_access_key = "test:tester";
static constexpr const char* swift_secret_key = "testing";

static task<s3_credentials> keys_of_swift() {
  co_return s3_credentials(swift_access_key, swift_secret_key);
}

static buffer bytes_of(std::string_view text) {
  buffer made(text.size());
  std::memcpy(made.data(), text.data(), text.size());
  return made;
}

// A signed request, which may be changed before it is sent.
static request signed_request(std::string_view method, const std::string& url,
                              std::string_view body, const std::string& secret) {
  request what(method, url);
  what.body = bytes_of(body);
  what.headers = {{"x-amz-meta-word", "harmless"}};
  s3_signer("us-east-1")
      .sign(method, url, what.headers, s3_credentials(swift_access_key, secret), sha256_text(body),
            std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
  return what;
}

static int port_of(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }

// One server for all tests. Each test has separate buckets.
class Swift : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<test::python_server>("swift_server.py");
    endpoint_ = server_->url();
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    if (!server_->serves()) GTEST_SKIP() << "Swift is not installed";
  }

  static const std::string& endpoint() { return endpoint_; }
  static s3_options options() { return {.endpoint = endpoint_, .region = "us-east-1"}; }

  static void make_bucket(runtime& runtime, const std::string& name) {
    auto what = signed_request("PUT", endpoint_ + "/" + name + "/", "", swift_secret_key);
    (void)sync_wait(runtime, client().send(std::move(what)));
  }

  static s3_store make_store() { return s3_store(options(), client(), keys_of_swift); }

 private:
  static inline std::unique_ptr<test::python_server> server_;
  static inline std::string endpoint_;
};

static task<std::vector<std::string>> listed(async_generator<object_info> listing) {
  std::vector<std::string> names;
  while (auto* each = co_await listing.next())
    names.push_back(each->name + " " + std::to_string(each->size_bytes));
  co_return names;
}

// The status of the answer, also of a refusal.
static task<int> status_of(client web, request what) {
  try {
    auto answer = co_await web.send(std::move(what));
    co_return answer.status();
  } catch (const error& failure) {
    EXPECT_EQ(&failure.code().category(), &status_category()) << failure.what();
    co_return failure.code().value();
  }
}

static task<std::vector<int>> statuses_of(client web, std::vector<request> requests) {
  std::vector<task<int>> running;
  for (auto& each : requests) running.push_back(status_of(web, std::move(each)));
  co_return co_await when_all(std::move(running));
}

TEST_F(Swift, KeepsObjectsOfAnyName) {
  runtime runtime;
  auto store = make_store();
  make_bucket(runtime, "odd");
  std::vector<std::string> keys{
      "plain", "a b", "a+b",    "100%",  "%41",    "q?r=s&t", "h#i",
      "x//y",  "d/",  "d/../e", "d/./e", "'\"<&>", "~!*()@:", "\xC3\xA4/\xE6\xBC\xA2",
      "a\\b"};
  std::vector<std::string> expected;
  for (auto& key : keys) {
    auto url = "s3://odd/" + key;
    sync_wait(runtime, store.put(url, bytes_of(key)));
    EXPECT_EQ(sync_wait(runtime, store.read(url)).text(), key);
    EXPECT_EQ(sync_wait(runtime, store.head(url)).object_bytes(), key.size()) << key;
    expected.push_back(url + " " + std::to_string(key.size()));
  }
  std::ranges::sort(expected);
  EXPECT_THAT(sync_wait(runtime, listed(store.list("s3://odd/"))), ElementsAreArray(expected));
  EXPECT_THAT(sync_wait(runtime, listed(store.list("s3://odd/a+"))),
              ElementsAreArray({"s3://odd/a+b 3"}));
  for (auto& key : keys) sync_wait(runtime, store.remove("s3://odd/" + key));
  EXPECT_TRUE(sync_wait(runtime, listed(store.list("s3://odd/"))).empty());
}

TEST_F(Swift, ReadsPartsOfObjects) {
  runtime runtime;
  auto store = make_store();
  make_bucket(runtime, "parts");
  sync_wait(runtime, store.put("s3://parts/a", bytes_of("0123456789")));
  EXPECT_EQ(sync_wait(runtime, store.get("s3://parts/a", {3, 4})).body().text(), "3456");
  EXPECT_EQ(sync_wait(runtime, store.get("s3://parts/a", {7})).body().text(), "789");
  auto object = sync_wait(runtime, store.open("s3://parts/a", false));
  EXPECT_EQ(object->size(), 10u);
  EXPECT_EQ(sync_wait(runtime, object->read_at(8, 2)).text(), "89");
  EXPECT_EQ(sync_wait(runtime, store.open("s3://parts/b", true)), nullptr);
  EXPECT_THAT([&] { (void)sync_wait(runtime, store.read("s3://parts/b")); },
              ThrowsMessage<error>(HasSubstr("/parts/b: 404 Not Found: NoSuchKey")));
  EXPECT_THAT([&] { (void)sync_wait(runtime, store.read("s3://absent/b")); },
              ThrowsMessage<error>(HasSubstr("NoSuchBucket")));
}

TEST_F(Swift, IsListedByFilesWithLabels) {
  runtime runtime;
  auto store = std::make_shared<const s3_store>(options(), client(), keys_of_swift);
  make_bucket(runtime, "photos");
  for (auto* key : {"train/cat/1.jpg", "train/cat/2.jpg", "train/dog/1.jpg", "train/dog/1.txt"})
    sync_wait(runtime, store->put("s3://photos/" + std::string(key), bytes_of(key)));
  io::mount("s3://photos/", store);
  std::vector<std::string> seen;
  auto samples = from(labelled_files("s3://photos/train/**/*.jpg")) | map(io::read);
  for (auto& each : runtime.run(samples))
    seen.push_back(std::string(each.data().text()) + " " + std::to_string(each.label()));
  io::unmount("s3://photos/");
  EXPECT_THAT(seen,
              ElementsAreArray({"train/cat/1.jpg 0", "train/cat/2.jpg 0", "train/dog/1.jpg 1"}));
}

static async_generator<buffer> chunks_of(std::string content, std::size_t chunk_bytes,
                                         std::size_t fails_at) {
  for (std::size_t at = 0; at < content.size(); at += chunk_bytes) {
    if (at >= fails_at) throw std::runtime_error("no more content");
    auto chunk = bytes_of(std::string_view(content).substr(at, chunk_bytes));
    co_yield chunk;
  }
}

static std::string random_text(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(bytes, '\0');
  for (auto& c : text) c = static_cast<char>(random());
  return text;
}

TEST_F(Swift, TakesUploadsInParts) {
  runtime runtime;
  auto store = make_store();
  make_bucket(runtime, "large");
  auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  const auto content = random_text((std::size_t{12} << 20) + 7, seed);
  const auto url = std::string("s3://large/a b");
  auto made = sync_wait(runtime, store.upload(url, chunks_of(content, 700'001, content.size()),
                                              {.part_bytes = 5 << 20}));
  EXPECT_EQ(made.name, url);
  EXPECT_EQ(made.size_bytes, content.size());
  EXPECT_THAT(made.etag, testing::EndsWith("-3"));
  auto read = sync_wait(runtime, store.get(url));
  EXPECT_EQ(read.etag(), '"' + made.etag + '"');
  EXPECT_TRUE(read.body().text() == content);

  auto same = sync_wait(runtime, store.upload(url, bytes_of(content), {.part_bytes = 5 << 20}));
  EXPECT_EQ(same.etag, made.etag);
  auto small = sync_wait(runtime, store.upload("s3://large/b", bytes_of("small")));
  EXPECT_EQ(small.size_bytes, 5u);
  EXPECT_EQ(sync_wait(runtime, store.read("s3://large/b")).text(), "small");
  EXPECT_EQ(sync_wait(runtime, store.upload("s3://large/c", buffer())).size_bytes, 0u);
}

// Puts another letter or digit in the place of one in [begin, end) that stands for itself. Returns
// whether there is one.
static bool change_byte(std::string& text, std::size_t begin, std::size_t end,
                        std::mt19937_64& random) {
  constexpr std::string_view letters = "0123456789abcdefghijklmnopqrstuvwxyz";
  for (int tries = 0; tries < 100; ++tries) {
    auto at = begin + random() % (end - begin);
    auto other = letters[random() % letters.size()];
    bool is_escape = text.substr(std::max<std::size_t>(at, 2) - 2, 2).find('%') != text.npos;
    if (letters.find(text[at]) == letters.npos || text[at] == other || is_escape) continue;
    text[at] = other;
    return true;
  }
  return false;
}

class tampered {
 public:
  tampered(std::string endpoint, std::mt19937_64& random)
      : endpoint_(std::move(endpoint)), random_(random) {}

  struct kind {
    const char* method;
    const char* target;
    const char* body;
  };

  request untouched(const kind& what) const {
    return signed_request(what.method, endpoint_ + what.target, what.body, swift_secret_key);
  }

  // The same with one byte changed; `place` says where.
  request changed(const kind& what, unsigned place) {
    auto whole = untouched(what);
    if (place == 0) {
      std::string secret = swift_secret_key;
      EXPECT_TRUE(change_byte(secret, 0, secret.size(), random_));
      return signed_request(what.method, whole.url(), what.body, secret);
    }
    if (place == 1) {  // the path or the query
      auto url = whole.url();
      EXPECT_TRUE(change_byte(url, endpoint_.size() + 1, url.size(), random_));
      return with(whole, what.method, url);
    }
    if (place == 2) {
      bool is_get = std::string_view(what.method) == "GET";
      return with(whole, is_get ? "HEAD" : "GET", whole.url());
    }
    if (place == 3 && *what.body) {
      std::string body = what.body;
      EXPECT_TRUE(change_byte(body, 0, body.size(), random_));
      whole.body = bytes_of(body);
      return whole;
    }
    auto& [name, value] = whole.headers[random_() % whole.headers.size()];
    auto begin = name == "Authorization" ? value.find("Credential=") + 11 : 0;
    EXPECT_TRUE(change_byte(value, begin, value.size(), random_)) << name;
    return whole;
  }

 private:
  static request with(const request& from, std::string_view method, const std::string& url) {
    request other(method, url);
    other.headers = from.headers;
    if (method == "PUT" || method == "POST") other.body = from.body;
    return other;
  }

  std::string endpoint_;
  std::mt19937_64& random_;
};

static task<std::string> body_of(client web, request what) {
  auto answer = co_await web.send(std::move(what));
  co_return std::string(answer.body().text());
}

// What is between the first <name> and its end.
static std::string element_of(const std::string& xml, const std::string& name) {
  auto begin = xml.find("<" + name + ">");
  if (begin == std::string::npos) throw std::runtime_error("no " + name + " in " + xml);
  begin += name.size() + 2;
  return xml.substr(begin, xml.find("</" + name + ">", begin) - begin);
}

// What Swift 2.30 answers before it looks at the signature, if it does: to methods that it does not
// have for a resource, and, by an internal error, to a list of another type and to the place of a
// list that is no UTF-8. 0 for others.
static int unknown_to_swift(const request& changed, const request& whole) {
  auto has = [&](const char* text) { return changed.url().find(text) != std::string::npos; };
  if (has("list-type=") && !has("list-type=2")) return 500;
  if (has("continuation-token=") && changed.url() != whole.url()) return 500;
  if (changed.method() == "POST" && !has("uploads=") && !has("uploadId=")) return 501;
  bool is_part = has("partNumber=") && has("uploadId=");
  bool is_half = has("partNumber=") != has("uploadId=");
  if (changed.method() == "GET" && is_part) return 405;
  if (changed.method() == "PUT" && is_half) return 405;
  return 0;
}

static client one_attempt() {
  client_options once;
  once.retry.attempts = 1;
  return client(once);
}

// Sends a request with a byte changed in eight places, and then as it is.
static void expect_only_whole(runtime& where, tampered& requests, const tampered::kind& kind,
                              int status) {
  const client web = one_attempt();
  auto whole = requests.untouched(kind);
  std::vector<request> sent;
  for (unsigned place = 0; place < 8; ++place) sent.push_back(requests.changed(kind, place));
  auto statuses = sync_wait(where, statuses_of(web, sent));
  for (unsigned place = 0; place < 8; ++place)
    EXPECT_THAT(statuses[place], AnyOf(400, 401, 403, unknown_to_swift(sent[place], whole)))
        << kind.method << " " << sent[place].url() << " " << place;
  EXPECT_EQ(sync_wait(where, status_of(web, std::move(whole))), status) << kind.target;
}

TEST_F(Swift, TakesSignedRequestsAndNoneWithAByteChanged) {
  runtime runtime;
  auto store = make_store();
  make_bucket(runtime, "signed");
  sync_wait(runtime, store.put("s3://signed/object", bytes_of("content")));
  auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  tampered requests(endpoint(), random);
  for (int round = 0; round < 20; ++round)
    for (auto& kind : std::vector<tampered::kind>{
             {"GET", "/signed/object", ""},
             {"HEAD", "/signed/object", ""},
             {"GET", "/signed/?encoding-type=url&list-type=2&prefix=obj%2Bect", ""},
             {"PUT", "/signed/another%20one", "some content"},
             {"PUT", "/signed/a//b", "other content"}})
      expect_only_whole(runtime, requests, kind, 200);
}

TEST_F(Swift, TakesSignedRemovalsAndNoneWithAByteChanged) {
  runtime runtime;
  auto store = make_store();
  make_bucket(runtime, "removals");
  auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  tampered requests(endpoint(), random);
  for (int round = 0; round < 10; ++round) {
    sync_wait(runtime, store.put("s3://removals/object 1", bytes_of("content")));
    expect_only_whole(runtime, requests, {"DELETE", "/removals/object%201", ""}, 204);
    EXPECT_EQ(sync_wait(runtime, store.open("s3://removals/object 1", true)), nullptr);
  }
}

TEST_F(Swift, TakesSignedUploadsInPartsAndNoneWithAByteChanged) {
  runtime runtime;
  auto store = make_store();
  make_bucket(runtime, "uploads");
  auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  tampered requests(endpoint(), random);
  for (int round = 0; round < 10; ++round) {
    const auto object = "/uploads/a%20b" + std::to_string(round);
    const auto initiate = object + "?uploads=";
    const tampered::kind begin{"POST", initiate.c_str(), ""};
    expect_only_whole(runtime, requests, begin, 200);
    auto answer = sync_wait(runtime, body_of(one_attempt(), requests.untouched(begin)));
    const auto id = "uploadId=" + percent_encoded(element_of(answer, "UploadId"), false);
    const auto part = object + "?partNumber=1&" + id;
    expect_only_whole(runtime, requests, {"PUT", part.c_str(), "content"}, 200);
    const std::string list =
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
        "<ETag>9a0364b9e99bb480dd25e1f0284c8555</ETag></Part></CompleteMultipartUpload>";
    const auto ended = object + "?" + id;
    expect_only_whole(runtime, requests, {"POST", ended.c_str(), list.c_str()}, 200);
    auto url = "s3://uploads/a b" + std::to_string(round);
    EXPECT_EQ(sync_wait(runtime, store.read(url)).text(), "content");
  }
}

TEST_F(Swift, TakesSignedPagesOfAListAndNoneWithAByteChanged) {
  runtime runtime;
  auto store = make_store();
  make_bucket(runtime, "pages");
  for (char key = 'a'; key < 'm'; ++key)
    sync_wait(runtime, store.put("s3://pages/" + std::string(1, key) + "+ b", bytes_of("x")));
  auto seed = test::new_seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  tampered requests(endpoint(), random);
  const std::vector<std::string> firsts{"a", "f", "k"};
  for (int round = 0; round < 5; ++round) {
    std::string token;
    for (std::size_t page = 0;; ++page) {
      auto next = token.empty() ? "" : "continuation-token=" + percent_encoded(token, false) + "&";
      const auto target = "/pages/?" + next + "encoding-type=url&list-type=2&max-keys=5&prefix=";
      const tampered::kind kind{"GET", target.c_str(), ""};
      expect_only_whole(runtime, requests, kind, 200);
      auto answer = sync_wait(runtime, body_of(one_attempt(), requests.untouched(kind)));
      bool has_more = element_of(answer, "IsTruncated") == "true";
      EXPECT_EQ(has_more, page < 2);
      EXPECT_EQ(element_of(answer, "Key"), firsts.at(page) + "%2B%20b");
      if (!has_more) break;
      token = element_of(answer, "NextContinuationToken");
    }
  }
}

TEST_F(Swift, KeepsNothingOfAnUploadThatFails) {
  runtime runtime;
  auto store = make_store();
  make_bucket(runtime, "failed");
  const std::string content(11 << 20, 'x');
  EXPECT_THAT(
      [&] {
        (void)sync_wait(runtime, store.upload("s3://failed/a", chunks_of(content, 1 << 20, 8 << 20),
                                              {.part_bytes = 5 << 20}));
      },
      testing::Throws<std::runtime_error>());
  EXPECT_TRUE(sync_wait(runtime, listed(store.list("s3://failed/"))).empty());
  auto uploads = sync_wait(
      runtime,
      client().send(signed_request("GET", endpoint() + "/failed?uploads", "", swift_secret_key)));
  EXPECT_THAT(uploads.body().text(), testing::Not(HasSubstr("<Upload>")));
  EXPECT_THAT(uploads.body().text(), HasSubstr("ListMultipartUploadsResult"));
}

// What Swift itself keeps of the parts of a bucket's objects, whatever its S3 interface says of
// them: "KEY/UPLOAD/NUMBER".
static task<std::vector<std::string>> kept_parts(std::string endpoint, std::string bucket) {
  const client web;
  request asks("GET", endpoint + "/auth/v1.0");
  asks.headers = {{"X-Auth-User", swift_access_key}, {"X-Auth-Key", swift_secret_key}};
  auto granted = co_await web.send(asks);
  request lists("GET", endpoint + "/v1/AUTH_test/" + bucket + "+segments");
  lists.headers = {{"X-Auth-Token", std::string(granted.header("x-auth-token"))}};
  std::string listing;
  try {
    auto answer = co_await web.send(lists);
    listing = answer.body().text();
  } catch (const error& failure) {
    if (failure.code() != status_code(204)) throw;  // it is empty
  }
  std::vector<std::string> parts;
  std::istringstream lines(listing);
  for (std::string each; std::getline(lines, each);)
    if (std::ranges::count(each, '/') == 2) parts.push_back(each);
  co_return parts;
}

// Cuts and resets, mostly of what is sent.
static test::wire_fault random_break(lade::random draw, std::uint64_t request_bytes) {
  test::wire_fault fault;
  fault.what = draw.below(2) ? test::wire_fault::kind::cut : test::wire_fault::kind::reset;
  fault.of_request = draw.below(3) > 0;
  fault.at = draw.below(fault.of_request ? request_bytes : 1'000);
  return fault;
}

// Returns why an upload failed; empty if it did not.
static std::string upload_over(test::fault_proxy& proxy, const std::string& url,
                               const std::string& content, bool is_patient) {
  client_options options;
  options.retry.attempts = is_patient ? 50 : 2;
  options.retry.pause = std::chrono::milliseconds(1);
  auto endpoint = "http://127.0.0.1:" + std::to_string(proxy.port());
  const s3_store store({.endpoint = endpoint, .region = "us-east-1"}, client(options),
                       keys_of_swift);
  runtime runtime;
  try {
    auto made = sync_wait(runtime, store.upload(url, bytes_of(content), {.part_bytes = 5 << 20}));
    EXPECT_EQ(made.size_bytes, content.size());
    EXPECT_THAT(made.etag, testing::EndsWith("-3"));
  } catch (const error& failure) {
    return failure.what();
  }
  return {};
}

TEST_F(Swift, TakesWholeUploadsOrNoneOverConnectionsThatBreakAnywhere) {
  runtime runtime;
  auto store = make_store();
  auto seed = test::new_seed();
  const auto content = random_text((std::size_t{12} << 20) + 7, seed);
  int made = 0;
  for (unsigned round = 0; round < 10; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    auto bucket = "broken" + std::to_string(round);
    auto url = "s3://" + bucket + "/a";
    make_bucket(runtime, bucket);
    test::fault_proxy proxy(port_of(endpoint()), [&](std::size_t connection) {
      bool breaks = connection < 2 * round;
      return breaks ? random_break(lade::random(seed, round, connection), 6 << 20)
                    : test::wire_fault{};
    });
    bool is_patient = round % 2 == 0;
    auto why = upload_over(proxy, url, content, is_patient);
    auto parts = sync_wait(runtime, kept_parts(endpoint(), bucket));
    auto object = sync_wait(runtime, store.open(url, true));
    if (why.empty() || object) {
      ++made;
      EXPECT_TRUE(sync_wait(runtime, store.read(url)).text() == content);
      EXPECT_EQ(parts.size(), 3u);
      continue;
    }
    EXPECT_FALSE(is_patient) << why;
    EXPECT_THAT(why, HasSubstr("/" + bucket + "/a"));
    bool says_so = why.find("its parts may still be on the server") != std::string::npos;
    EXPECT_TRUE(says_so || parts.empty()) << why;
  }
  EXPECT_GE(made, 5);
}

}  // namespace lade::io::http::swift_test
