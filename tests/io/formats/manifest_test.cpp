#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/formats/manifest.hpp>
#include <lade/io/formats/saved_listing.hpp>
#include <lade/io/store.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../support/reactors.hpp"
#include "../../support/resume.hpp"
#include "../../support/temp_dir.hpp"
#include "bytes.hpp"

namespace lade::io::manifest_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static std::vector<std::string> keys_of(const std::vector<sample>& samples) {
  std::vector<std::string> keys;
  for (auto& each : samples) keys.push_back(each.key());
  return keys;
}

// What listing a file with this name and text throws.
static std::string refusal(const std::string& name, std::string_view text,
                           const manifest_options& options = {}) {
  temp_dir dir;
  auto path = dir.write(name, text);
  try {
    (void)manifest(path, options).list_all();
  } catch (const error& refused) {
    std::string what = refused.what();
    auto at = what.find(path);
    return at == what.npos ? what : what.replace(at, path.size(), name);
  }
  return "none";
}

TEST(Manifest, OfCsvHasPathsLabelsRangesAndFields) {
  temp_dir dir;
  auto path = dir.write("a.csv",
                        "\xef\xbb\xbfpath,label,offset,length,caption\r\n"
                        "a.bin,3,10,20,\"one, \"\"two\"\"\nthree\"\r\n"
                        "\r\n"
                        "/b.bin,,,,plain\n"
                        "s3://bucket/c,-7,5,,");
  auto samples = manifest(path, {.root = "data"}).list_all();
  EXPECT_THAT(keys_of(samples), ElementsAre("data/a.bin", "/b.bin", "s3://bucket/c"));
  EXPECT_EQ(samples[0].label(), 3);
  EXPECT_EQ(samples[0].field("offset").integer(), 10);
  EXPECT_EQ(samples[0].field("length").integer(), 20);
  EXPECT_EQ(samples[0].field("caption").text(), "one, \"two\"\nthree");
  EXPECT_EQ(samples[1].label(), sample::no_label);
  EXPECT_FALSE(samples[1].find_field("offset"));
  EXPECT_EQ(samples[2].label(), -7);
  EXPECT_FALSE(samples[2].find_field("length"));
  EXPECT_EQ(samples[2].field("caption").text(), "");
}

TEST(Manifest, OfJsonLinesHasTheSame) {
  temp_dir dir;
  auto path =
      dir.write("a.jsonl",
                "{\"url\":\"https://x/a\",\"label\":3,\"offset\":10,\"length\":20,\"w\":0.5}\n"
                "\n{\"key\":\"b\",\"label\":null,\"tags\":[1]}\n");
  auto samples = manifest(path).list_all();
  EXPECT_THAT(keys_of(samples), ElementsAre("https://x/a", "b"));
  EXPECT_EQ(samples[0].label(), 3);
  EXPECT_EQ(samples[0].field("length").integer(), 20);
  EXPECT_EQ(samples[0].field("w").number(), 0.5);
  EXPECT_EQ(samples[1].label(), sample::no_label);
  EXPECT_EQ(samples[1].field("tags").text(), "[1]");
}

TEST(Manifest, ColumnsCanHaveOtherNames) {
  temp_dir dir;
  auto path = dir.write("a.txt", "file,class,label,start\nx,4,cat,9\n");
  auto samples =
      manifest(path,
               {.format = manifest_format::csv, .key = "file", .label = "class", .offset = "start"})
          .list_all();
  EXPECT_EQ(samples[0].label(), 4);
  EXPECT_EQ(samples[0].field("label").text(), "cat");
  EXPECT_EQ(samples[0].field("offset").integer(), 9);
}

TEST(Manifest, IsAnIndexSourceThatIdentifiesItsItems) {
  temp_dir dir;
  std::string rows = "path,offset\n";
  for (int i = 0; i < 100; ++i) rows += "a," + std::to_string(i) + "\n";
  manifest listed(dir.write("a.csv", rows));
  EXPECT_EQ(sync_wait(test::collect(listed.list())).size(), 100u);
  auto all = listed.list_all();
  EXPECT_NE(listed.identity_of(all[0]), listed.identity_of(all[1]));
  runtime runtime;
  auto running = runtime.run(from(listed) | shuffle({.seed = 7}));
  std::vector<std::int64_t> offsets;
  for (auto& each : running) offsets.push_back(each.field("offset").integer());
  EXPECT_EQ(offsets.size(), 100u);
  EXPECT_FALSE(std::is_sorted(offsets.begin(), offsets.end()));
}

TEST(Manifest, IdentitiesIgnoreSignatures) {
  manifest listed("x.csv");
  auto identity = [&](const std::string& key) { return listed.identity_of(sample(key)); };
  const std::string signature = "X-Amz-Credential=a&X-Amz-Date=1&X-Amz-Signature=";
  EXPECT_EQ(identity("https://h/a?" + signature + "b"), identity("https://h/a"));
  EXPECT_NE(identity("https://h/a?x=1&" + signature + "b"), identity("https://h/a"));
}

TEST(Manifest, RowsOfAnyLengthAreRead) {
  temp_dir dir;
  std::string text(300'000, '"');
  auto path = dir.write("a.csv", "path,text\na,\"" + text + "\"\nb,c\n");
  auto samples = manifest(path).list_all();
  EXPECT_EQ(samples[0].field("text").text(), text.substr(0, 150'000));
  EXPECT_EQ(samples[1].field("text").text(), "c");
  EXPECT_EQ(refusal("a.csv", "path\na\n" + std::string(1000, 'x'), {.max_row_bytes = 999}),
            "read a.csv: the row at line 3 is longer than max_row_bytes, 999");
}

TEST(Manifest, ErrorsNameTheFileAndTheLine) {
  EXPECT_EQ(refusal("a.csv", ""), "read a.csv: line 0: there is no line that names the columns");
  EXPECT_EQ(refusal("a.csv", "a,b\n"),
            "read a.csv: line 1: there must be one column \"path\", \"url\" or \"key\"");
  EXPECT_EQ(refusal("a.csv", "a,b\n", {.key = "file"}),
            "read a.csv: line 1: there must be one column \"file\"");
  EXPECT_EQ(refusal("a.csv", "path,a,a\n"), "read a.csv: line 1: two columns are called \"a\"");
  EXPECT_EQ(refusal("a.csv", "path,a\nx,1\ny\n"),
            "read a.csv: line 3: 1 cells; there are 2 columns");
  EXPECT_EQ(refusal("a.csv", "path,label\n\"x\ny\",1\nz,cat\n"),
            "read a.csv: line 4: \"label\" is not an integer of 64 bits");
  EXPECT_EQ(refusal("a.csv", "path,offset\nx,-1\n"), "read a.csv: line 2: \"offset\" is negative");
  EXPECT_EQ(refusal("a.csv", "path,label\n,1\n"),
            "read a.csv: line 2: there is no \"path\", \"url\" or \"key\"");
  EXPECT_THAT(refusal("a.csv", "path\na\"b\"\n"), HasSubstr("a quote or an end of line"));
  EXPECT_THAT(refusal("a.csv", "path\n\"a\"b\n"), HasSubstr("text after a quoted cell"));
  EXPECT_THAT(refusal("a.csv", "path\n\"a\n"), HasSubstr("a quoted cell without an end"));
  EXPECT_THAT(refusal("a.csv", "path,offset,length\nx,1,9223372036854775807\n"),
              HasSubstr("more than 63 bits"));
  EXPECT_EQ(refusal("a.jsonl", "{\"path\":1}\n"), "read a.jsonl: line 1: \"path\" is not text");
  EXPECT_THAT(refusal("a.jsonl", "{\"path\":\"a\",\"url\":\"b\"}\n"), HasSubstr("one member"));
  EXPECT_THAT(refusal("a.jsonl", "{\"path\":\"a\",\"label\":1.5}\n"), HasSubstr("not an integer"));
  EXPECT_THAT(refusal("a.jsonl", "{\"path\":\n"), HasSubstr("line 1, byte 8"));
  EXPECT_THAT(refusal("a.jsonl", "{\"path\":\"a\",\"b\":" + std::string(100'000, '[') + "\n"),
              HasSubstr("read a.jsonl: line 1, byte 80: more than 64 levels"));
  EXPECT_THAT(refusal("a.txt", ""), HasSubstr("must end with .csv, .jsonl or .ndjson"));
  EXPECT_THAT([] { (void)manifest("/absent.csv").list_all(); },
              ThrowsMessage<error>("open /absent.csv: No such file or directory"));
  EXPECT_THAT([] { (void)manifest("/", {.format = manifest_format::csv}).list_all(); },
              ThrowsMessage<error>("read /: Is a directory"));
}

// Objects in memory, mounted at "memory://" as long as they live.
class memory_objects {
 public:
  explicit memory_objects(std::map<std::string, std::string> content, std::size_t chunk_bytes = 7)
      : store_(std::make_shared<const objects>(std::move(content), chunk_bytes)) {
    mount("memory://", store_);
  }
  memory_objects(const memory_objects&) = delete;
  ~memory_objects() { unmount("memory://"); }

 private:
  class objects final : public store {
   public:
    objects(std::map<std::string, std::string> content, std::size_t chunk_bytes)
        : content_(std::move(content)), chunk_bytes_(chunk_bytes) {}

    task<buffer> read(std::string url) const override {
      co_return test::buffer_of(content_.at(url));
    }
    task<std::shared_ptr<const byte_reader>> open(std::string url, bool) const override {
      co_return std::make_shared<const memory_reader>(test::buffer_of(content_.at(url)), url);
    }
    async_generator<buffer> stream(std::string url, stream_options) const override {
      auto found = content_.find(url);
      if (found == content_.end()) throw error(errc::invalid_argument, "get " + url, "not there");
      for (std::size_t at = 0; at < found->second.size(); at += chunk_bytes_) {
        auto chunk = test::buffer_of(found->second.substr(at, chunk_bytes_));
        co_yield chunk;
      }
    }
    async_generator<object_info> list(std::string prefix) const override {
      for (auto& [url, text] : content_) {
        object_info listed(url, text.size(), "tag of " + url);
        if (url.starts_with(prefix)) co_yield listed;
      }
    }

   private:
    std::map<std::string, std::string> content_;
    std::size_t chunk_bytes_;
  };

  std::shared_ptr<const store> store_;
};

TEST(Manifest, BehindAUrlIsReadInChunksOfAnySize) {
  temp_dir dir;
  const std::string csv =
      "\xef\xbb\xbfpath,label,caption\r\na.bin,3,\"one, \"\"two\"\"\nthree\"\r\n\r\n/b.bin,,x\n"
      "d/e,1,\n\ns3://bucket/c,-7,last";
  auto root = std::string("memory://bucket/lists/");
  auto expected = manifest(dir.write("a.csv", csv), {.root = root}).list_all();
  ASSERT_EQ(expected.size(), 4u);
  runtime runtime;
  for (std::size_t chunk_bytes : {1u, 2u, 3u, 5u, 8u, 1000u}) {
    memory_objects objects({{root + "a.csv", csv}}, chunk_bytes);
    const manifest listed(root + "a.csv");
    auto samples = sync_wait(runtime, listed.load_all());
    EXPECT_EQ(keys_of(samples), keys_of(expected));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(samples.at(i).label(), expected[i].label());
      EXPECT_EQ(samples[i].field("caption").text(), expected[i].field("caption").text());
    }
    EXPECT_EQ(keys_of(sync_wait(runtime, test::collect(listed.list()))), keys_of(expected));
  }
  EXPECT_EQ(expected[0].key(), "memory://bucket/lists/a.bin");
  EXPECT_EQ(expected[1].key(), "/b.bin");
}

TEST(Manifest, BehindAUrlIsNamedWithoutSecrets) {
  const auto url = std::string("memory://user:secret@host/a.jsonl");
  memory_objects objects({{url, "{\"path\":1}\n"}, {"memory://empty.csv", ""}});
  runtime runtime;
  EXPECT_THAT(
      [&] { (void)manifest(url).list_all(); },
      ThrowsMessage<error>("list memory://host/a.jsonl: a store has to be waited for: await "
                           "load_all()"));
  EXPECT_THAT([&] { (void)sync_wait(runtime, manifest(url).load_all()); },
              ThrowsMessage<error>("read memory://host/a.jsonl: line 1: \"path\" is not text"));
  EXPECT_THAT([&] { (void)sync_wait(runtime, manifest("memory://empty.csv").load_all()); },
              ThrowsMessage<error>(HasSubstr("there is no line that names the columns")));
  EXPECT_THAT([&] { (void)sync_wait(runtime, manifest("memory://absent.csv").load_all()); },
              ThrowsMessage<error>("get memory://absent.csv: not there"));
  EXPECT_EQ(manifest("https://host/a.csv?token=b").path(), "https://host/a.csv?token=b");
  EXPECT_THAT([] { (void)manifest("https://host/a.txt?b=secret.csv"); },
              ThrowsMessage<error>(HasSubstr("list https://host/a.txt?b=...: a manifest must")));
}

TEST(Manifest, MayBeAUrlOfAFile) {
  temp_dir dir;
  auto path = dir.write("a.csv", "path\nx\n");
  EXPECT_THAT(keys_of(manifest("file://" + path).list_all()), ElementsAre("x"));
}

static std::map<std::string, std::string> photos_in_memory() {
  std::map<std::string, std::string> objects;
  for (int i = 0; i < 40; ++i)
    objects["memory://b/train/" + std::string(i % 2 ? "cat/" : "dog/") + std::to_string(i)] =
        std::string(static_cast<std::size_t>(i), 'x');
  return objects;
}

TEST(SavedListing, HasLabelsSizesAndTagsOfTheListing) {
  temp_dir dir;
  memory_objects objects(photos_in_memory());
  runtime runtime;
  const labelled_files photos("memory://b/train");
  sync_wait(runtime, save_listing(photos, dir / "list.jsonl"));
  const saved_listing saved(photos, dir / "list.jsonl");
  auto listed = sync_wait(runtime, photos.load_all());
  auto read = saved.list_all();
  EXPECT_EQ(keys_of(sync_wait(runtime, saved.load_all())), keys_of(listed));
  EXPECT_EQ(keys_of(sync_wait(runtime, test::collect(saved.list()))), keys_of(listed));
  ASSERT_EQ(keys_of(read), keys_of(listed));
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].label(), listed[i].label());
    EXPECT_EQ(read[i].field("size").integer(), listed[i].field("size").integer());
    EXPECT_EQ(read[i].field("etag").text(), listed[i].field("etag").text());
    EXPECT_EQ(saved.identity_of(read[i]), photos.identity_of(listed[i]));
  }
  EXPECT_THAT(
      [&] { (void)saved.identity_of(sample("memory://b/other/1")); },
      ThrowsMessage<error>(
          "list memory://b/train: memory://b/other/1 is not one of its files that match **"));
}

// The rest of a run over one source from the state of a run over another.
template <class First, class Second>
static std::vector<std::string> keys_of_both(runtime& where, const First& first,
                                             const Second& second) {
  run_options next;
  std::vector<sample> all;
  (void)test::take_part(where, from(first) | shuffle({.seed = 5}), 15, next, all);
  (void)test::take_part(where, from(second) | shuffle({.seed = 5}), 100, next, all);
  return keys_of(all);
}

TEST(SavedListing, SharesStatesWithTheListing) {
  temp_dir dir;
  memory_objects objects(photos_in_memory());
  runtime runtime;
  const files photos("memory://b/train", "**", {.compare_sizes = true});
  sync_wait(runtime, save_listing(photos, dir / "list.jsonl"));
  const saved_listing saved(photos, dir / "list.jsonl");
  auto whole = keys_of_both(runtime, photos, photos);
  EXPECT_EQ(whole.size(), 40u);
  EXPECT_EQ(keys_of_both(runtime, photos, saved), whole);
  EXPECT_EQ(keys_of_both(runtime, saved, photos), whole);
}

TEST(SaveManifest, WritesWhatIsReadAgain) {
  temp_dir dir;
  auto path = dir / "list.jsonl";
  std::vector<sample> samples;
  samples.push_back(sample("a \"quoted\"\n\u00e4", 5).with_field(field("offset", 3)));
  samples.push_back(sample("b").with_fields(
      {field("n", -1), field("x", 2.0), field("y", 0.1), field("t", "[1]")}));
  save_manifest(path, samples);
  auto read = manifest(path).list_all();
  EXPECT_THAT(keys_of(read), ElementsAre(samples[0].key(), "b"));
  EXPECT_EQ(read[0].label(), 5);
  EXPECT_EQ(read[0].field("offset").integer(), 3);
  EXPECT_EQ(read[1].label(), sample::no_label);
  EXPECT_EQ(read[1].field("n").integer(), -1);
  EXPECT_EQ(read[1].field("x").type(), field::kind::number);
  EXPECT_EQ(read[1].field("y").number(), 0.1);
  EXPECT_EQ(read[1].field("t").text(), "[1]");
}

TEST(SaveManifest, LeavesWhatWasThereIfItFails) {
  temp_dir dir;
  auto path = dir.write("list.jsonl", "{\"path\":\"old\"}\n");
  auto refused = [&](sample bad) {
    std::vector<sample> samples{sample("good"), std::move(bad)};
    EXPECT_THROW(save_manifest(path, samples), error);
    EXPECT_THAT(keys_of(manifest(path).list_all()), ElementsAre("old"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
  };
  refused(sample("a").with_data({}));
  refused(sample("a\xff"));
  refused(sample("a").with_field(field("path", "b")));
  refused(sample("a").with_field(field("x", std::numeric_limits<double>::infinity())));
  refused(sample("a").with_field(field("x", buffer())));
  EXPECT_THAT(
      [&] { save_manifest(dir / "absent/x.jsonl", {}); },
      ThrowsMessage<error>("write " + (dir / "absent/x.jsonl") + ": No such file or directory"));
  EXPECT_THROW(save_manifest(dir / "x.csv", {}), error);
}

class ReadRange : public testing_support::ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, ReadRange,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

TEST_P(ReadRange, ReadsTheBytesThatTheFieldsSay) {
  temp_dir dir;
  auto path = dir.write("a", "0123456789");
  runtime runtime(options());
  auto read = [&](sample from) {
    return std::string(sync_wait(runtime, read_range(std::move(from))).data().text());
  };
  auto offset = [](int n) { return field("offset", n); };
  auto length = [](int n) { return field("length", n); };
  EXPECT_EQ(read(sample(path)), "0123456789");
  EXPECT_EQ(read(sample(path).with_field(offset(7))), "789");
  EXPECT_EQ(read(sample(path).with_field(length(2))), "01");
  EXPECT_EQ(read(sample(path).with_field(offset(3)).with_field(length(2))), "34");
  EXPECT_THAT([&] { read(sample(path).with_field(offset(9)).with_field(length(2))); },
              ThrowsMessage<error>("read 2 bytes at 9 of " + path + ": it has 10 bytes"));
  EXPECT_THROW(read(sample(path).with_field(offset(11))), error);
  EXPECT_THROW(read(sample(path).with_field(offset(-1))), error);
}

}  // namespace lade::io::manifest_test
