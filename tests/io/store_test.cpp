#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/io/store.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shuffle.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../support/temp_dir.hpp"

namespace lade::io::store_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static buffer bytes_of(std::string_view text) {
  buffer bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// Objects whose content is their URL behind a letter.
class echoes final : public store {
 public:
  explicit echoes(std::string letter) : letter_(std::move(letter)) {}

  task<buffer> read(std::string url) const override { co_return bytes_of(letter_ + url); }
  task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                bool may_be_absent) const override {
    if (may_be_absent) co_return nullptr;
    co_return std::make_shared<const memory_reader>(bytes_of(letter_ + url), url);
  }
  async_generator<buffer> stream(std::string url, stream_options) const override {
    auto content = bytes_of(letter_ + url);
    co_yield content;
  }

 private:
  std::string letter_;
};

// Mounted as long as it lives.
struct mounted {
  mounted(std::string at, std::shared_ptr<const store> where) : prefix(std::move(at)) {
    mount(prefix, std::move(where));
  }
  mounted(const mounted&) = delete;
  ~mounted() { unmount(prefix); }

  std::string prefix;
};

static task<std::string> part_of(std::string name) {
  auto from = co_await open(std::move(name));
  auto part = co_await from.read_at(0, 6);
  co_return std::string(part.text()) + " of " + std::to_string(from.size());
}

static task<std::string> streamed(std::string name) {
  std::string all;
  auto chunks = stream(std::move(name));
  while (auto* chunk = co_await chunks.next()) all += chunk->text();
  co_return all;
}

TEST(Store, IsReadLikeFiles) {
  mounted here("echo://", std::make_shared<const echoes>("A"));
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, read(sample("echo://a/b"))).data().text(), "Aecho://a/b");
  EXPECT_EQ(sync_wait(runtime, read_file("echo://a/b")).text(), "Aecho://a/b");
  EXPECT_EQ(sync_wait(runtime, part_of("echo://a/b")), "Aecho: of 11");
  EXPECT_EQ(sync_wait(runtime, streamed("echo://a/b")), "Aecho://a/b");
  EXPECT_EQ(sync_wait(runtime, stat("echo://a/b")).size_bytes, 11u);
  EXPECT_FALSE(sync_wait(runtime, try_open("echo://a/b")));
}

TEST(Store, BehindTheEndOfAnObjectIsAnEmptyPart) {
  const echoes store("A");
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, store.read_part("echo://a", 7, 5, "")).content().text(), "/a");
  for (std::uint64_t offset : {std::uint64_t{9}, std::uint64_t{1} << 40}) {
    auto part = sync_wait(runtime, store.read_part("echo://a", offset, 5, ""));
    EXPECT_EQ(part.content().size(), 0u);
    EXPECT_EQ(part.object_bytes(), 9u);
  }
}

TEST(Store, AtTheLongestPrefixIsUsed) {
  mounted whole("nested://", std::make_shared<const echoes>("A"));
  mounted part("nested://b/", std::make_shared<const echoes>("B"));
  EXPECT_FALSE(mount_if_free("nested://b/", std::make_shared<const echoes>("C")));
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, read_file("nested://a/c")).text(), "Anested://a/c");
  EXPECT_EQ(sync_wait(runtime, read_file("nested://b/c")).text(), "Bnested://b/c");
  mount("nested://b/", std::make_shared<const echoes>("D"));
  EXPECT_EQ(sync_wait(runtime, read_file("nested://b/c")).text(), "Dnested://b/c");
  unmount("nested://b/");
  EXPECT_EQ(sync_wait(runtime, read_file("nested://b/c")).text(), "Anested://b/c");
}

// A store with these objects.
class listed final : public store {
 public:
  explicit listed(std::vector<std::string> names) : names_(std::move(names)) {}

  task<buffer> read(std::string url) const override { co_return bytes_of(url); }
  task<std::shared_ptr<const byte_reader>> open(std::string, bool) const override {
    co_return nullptr;
  }
  async_generator<buffer> stream(std::string, stream_options) const override { co_return; }
  async_generator<object_info> list(std::string prefix) const override {
    for (auto& name : names_) {
      object_info found(name, name.size(), "tag");
      if (name.starts_with(prefix)) co_yield found;
    }
  }

 private:
  std::vector<std::string> names_;
};

static std::vector<std::string> keys_of(const std::vector<sample>& samples) {
  std::vector<std::string> keys;
  for (auto& each : samples) keys.push_back(each.key() + " " + std::to_string(each.label()));
  return keys;
}

TEST(Store, IsListedLikeADirectory) {
  mounted here("listed://",
               std::make_shared<const listed>(std::vector<std::string>{
                   "listed://b/train/", "listed://b/train/.x/1.jpg", "listed://b/train/bird/0.txt",
                   "listed://b/train/cat/1.jpg", "listed://b/train/cat/2.png",
                   "listed://b/train/dog/3.jpg", "listed://b/trainer/4.jpg"}));
  runtime runtime;
  files jpegs("listed://b/train", "**/*.jpg");
  labelled_files classes("listed://b/train", "**/*.jpg");
  EXPECT_THAT(keys_of(sync_wait(runtime, jpegs.load_all())),
              ElementsAre("listed://b/train/cat/1.jpg -1", "listed://b/train/dog/3.jpg -1"));
  EXPECT_THAT(keys_of(sync_wait(runtime, classes.load_all())),
              ElementsAre("listed://b/train/cat/1.jpg 1", "listed://b/train/dog/3.jpg 2"));
  EXPECT_THAT(sync_wait(runtime, classes.load_class_names()), ElementsAre("bird", "cat", "dog"));
  std::vector<sample> in_order;
  std::vector<sample> shuffled;
  for (auto& each : runtime.run(from(classes))) in_order.push_back(each);
  for (auto& each : runtime.run(from(classes) | shuffle({.seed = 1}))) shuffled.push_back(each);
  EXPECT_THAT(keys_of(in_order),
              ElementsAre("listed://b/train/cat/1.jpg 1", "listed://b/train/dog/3.jpg 2"));
  EXPECT_EQ(shuffled.size(), 2u);
  EXPECT_EQ(in_order[0].field("size").integer(), 26);
  EXPECT_EQ(in_order[0].field("etag").text(), "tag");
}

template <class T>
static task<std::optional<T>> next_of(async_generator<T>& from) {
  auto* next = co_await from.next();
  co_return next ? std::optional<T>(*next) : std::nullopt;
}

TEST(Store, ReadersKeepAnUnmountedStoreAlive) {
  auto named = std::make_shared<const echoes>("A");
  std::weak_ptr<const store> echoing = named;
  mount("unmounted://", std::move(named));
  auto few = std::make_shared<const listed>(std::vector<std::string>{"unmounted://l/a"});
  std::weak_ptr<const store> listing = few;
  mount("unmounted://l", std::move(few));
  runtime runtime;
  {
    auto chunks = stream("unmounted://a");
    auto found = files("unmounted://l").list();
    ASSERT_TRUE(sync_wait(runtime, next_of(found)));
    unmount("unmounted://");
    unmount("unmounted://l");
    EXPECT_FALSE(echoing.expired());
    EXPECT_FALSE(listing.expired());
    EXPECT_EQ(sync_wait(runtime, next_of(chunks))->text(), "Aunmounted://a");
    EXPECT_FALSE(sync_wait(runtime, next_of(found)));
  }
  EXPECT_TRUE(echoing.expired());
  EXPECT_TRUE(listing.expired());
}

TEST(Store, AListingWithoutAMatchIsNamed) {
  mounted here("listed://", std::make_shared<const listed>(std::vector<std::string>{}));
  runtime runtime;
  EXPECT_THAT([&] { (void)sync_wait(runtime, files("listed://b", "*.jpg").load_all()); },
              ThrowsMessage<error>("list listed://b: no object matches *.jpg"));
  EXPECT_THAT([] { (void)files("listed://b").list_all(); },
              ThrowsMessage<error>(HasSubstr("await load_all()")));
}

TEST(Store, ThatIsNotMountedIsNamed) {
  runtime runtime;
  EXPECT_THAT([&] { (void)sync_wait(runtime, read_file("https://u:p@host/a")); },
              ThrowsMessage<error>("open https://host/a: no store is mounted at https://; include "
                                   "<lade/io/http/urls.hpp>"));
  EXPECT_THAT([&] { (void)sync_wait(runtime, read(sample("hdfs://host/a"))); },
              ThrowsMessage<error>("open hdfs://host/a: no store is mounted at hdfs://"));
  for (auto* prefix : {"file://", "file:///data/"})
    EXPECT_THAT([&] { mount(prefix, std::make_shared<const echoes>("A")); },
                ThrowsMessage<error>(HasSubstr("names files, which no store reads")));
  EXPECT_THAT([] { mount("null://", nullptr); },
              ThrowsMessage<error>("mount a store: the store for 'null://' is null"));
  EXPECT_THAT([] { mount("/data", nullptr); },
              ThrowsMessage<error>(HasSubstr("'/data' is no URL")));
  EXPECT_THAT([] { mount(" https://u:secret@host/", nullptr); },
              ThrowsMessage<error>(HasSubstr("' https://host/' is no URL")));
  EXPECT_THAT([] { mount("1https://h/?sig=SECRET", nullptr); },
              ThrowsMessage<error>(HasSubstr("'1https://h/?sig=...' is no URL")));
}

TEST(Store, ThatCannotListSaysSo) {
  EXPECT_THAT([] { (void)echoes("A").list("echo://a/"); },
              ThrowsMessage<error>("list echo://a/: its store has no listings"));
}

TEST(Store, UrlsOfFilesArePaths) {
  temp_dir dir;
  runtime runtime;
  auto path = dir.write("a b", "text");
  auto url = "file://" + path;
  url.replace(url.rfind(' '), 1, "%20");
  EXPECT_EQ(local_path(url), path);
  EXPECT_EQ(sync_wait(runtime, read(sample(url))).data().text(), "text");
  EXPECT_EQ(sync_wait(runtime, part_of("file://localhost" + dir.write("c", "content"))),
            "conten of 7");
  EXPECT_EQ(local_path("/a%20b"), "/a%20b");
  EXPECT_THAT([] { (void)local_path("file:///a%2"); },
              ThrowsMessage<error>("open file:///a%2: a % without two hexadecimal digits"));
  EXPECT_THAT([] { (void)local_path("file://user:SECRET@host/a"); },
              ThrowsMessage<error>("open file://host/a: not a file of this machine"));
  EXPECT_THAT([] { (void)local_path("file://host/a"); },
              ThrowsMessage<error>(HasSubstr("not a file of this machine")));
}

// The system would open what stands before it.
TEST(Store, PathsWithAZeroByteAreRefused) {
  temp_dir dir;
  runtime runtime;
  auto path = dir.write("a", "text");
  for (auto& [name, shown] : {std::pair(path + std::string("\0b", 2), path + "\\x00b"),
                              std::pair("file://" + path + "%00b", "file://" + path + "%00b")}) {
    auto refusal = ThrowsMessage<error>("open " + shown + ": no path has a zero byte");
    EXPECT_THAT([&] { (void)local_path(name); }, refusal);
    EXPECT_THAT([&] { (void)sync_wait(runtime, read(sample(name))); }, refusal);
    EXPECT_THAT([&] { (void)sync_wait(runtime, read_file(name)); }, refusal);
    EXPECT_THAT([&] { (void)sync_wait(runtime, part_of(name)); }, refusal);
  }
}

TEST(StoreListing, ComparesSizesAndNoEntityTags) {
  auto object = [](const std::string& root, int bytes, const char* etag) {
    return sample(root + "/a").with_fields({field("size", bytes), field("etag", etag)});
  };
  const files sized("bucket://b", "**", {.compare_sizes = true});
  const files copied("bucket://copy", "**", {.compare_sizes = true});
  auto before = sized.identity_of(object("bucket://b", 7, "v1"));
  EXPECT_EQ(before, "a 7");
  EXPECT_EQ(sized.identity_of(object("bucket://b", 7, "v2")), before);
  EXPECT_EQ(copied.identity_of(object("bucket://copy", 7, "v3")), before);
  EXPECT_NE(sized.identity_of(object("bucket://b", 8, "v1")), before);
}

}  // namespace lade::io::store_test
