#include <lade/batch.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/formats/tar_samples.hpp>
#include <lade/io/store.hpp>
#include <lade/map.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "../../support/counted_store.hpp"
#include "../../support/pipelines.hpp"
#include "../../support/temp_dir.hpp"
#include "tar_bytes.hpp"

namespace lade::io::tar_samples_test {

using test::collect;
using test::tar_end;
using test::tar_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static std::string archive_of(int shard, int samples) {
  std::string bytes;
  for (int i = 0; i < samples; ++i) {
    auto key = std::to_string(shard) + "-" + std::to_string(i);
    bytes += tar_file(key + ".txt", key) + tar_file(key + ".cls", std::to_string(i)) +
             tar_file(key + ".big.bin", std::string(100'000, 'x')) + tar_file(key + ".end", "e");
  }
  return bytes + tar_end();
}

static std::string write_shards(const temp_dir& dir) {
  for (int i = 0; i < 5; ++i) dir.write(std::to_string(i) + ".tar", archive_of(i, 1 + i * 5 % 7));
  return dir / "{0..4}.tar";
}

static std::string text_of(const sample& from) {
  auto text = from.key().substr(from.key().find(".tar/") + 5);
  for (auto& field : from.fields()) text += " " + std::string(field.text().substr(0, 5));
  return text;
}

TEST(TarSamples, AreReadByIndexWithTheChosenFields) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  tar_samples_options options{.read = {.fields = "txt,end", .data = "txt", .label = "cls"}};
  auto samples = sync_wait(runtime, index_shards(shards(write_shards(dir)), options));
  EXPECT_EQ(samples.size(), 1u + 6 + 4 + 2 + 7);
  auto all = collect(runtime, from(samples) | map(samples.read()));
  ASSERT_EQ(all.size(), samples.size());
  EXPECT_EQ(text_of(all[1]), "1-0 1-0 0 e");
  EXPECT_EQ(text_of(all[6]), "1-5 1-5 5 e");
  EXPECT_EQ(all[6].label(), 5);
  EXPECT_EQ(all[6].data().text(), "1-5");
  EXPECT_EQ(samples.identity_of(all[6]), "1.tar/1-5");
}

TEST(TarSamples, AreAnIndexSourceWhoseIdentityIsThatOfACopyElsewhere) {
  temp_dir dir, copy;
  runtime runtime({.threads = 2});
  for (auto* each : {&dir, &copy}) {
    for (int i : {0, 2}) each->write(std::to_string(i) + ".tar", archive_of(i, 1 + i));
    each->write("1.tar", tar_end());  // a shard without samples
  }
  auto samples = sync_wait(runtime, index_shards(shards(dir / "{0..2}.tar")));
  EXPECT_EQ(from(samples).size(), 4u);
  auto listed = samples.list_all();
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(samples.at(i).key(), listed[i].key());
  EXPECT_THAT([&] { samples.at(4); },
              ThrowsMessage<error>(HasSubstr("list sample 4: the shards have 4")));
  auto copied = sync_wait(runtime, index_shards(shards(copy / "{0..2}.tar")));
  EXPECT_EQ(copied.identity(), samples.identity());
  auto fewer = sync_wait(runtime, index_shards(shards(copy / "{1..2}.tar")));
  EXPECT_NE(fewer.identity(), samples.identity());
}

// An index supports what no stream can: equal steps, and a state behind a window and a batch.
TEST(TarSamples, ShuffledShardsResumeExactly) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  auto samples = sync_wait(runtime, index_shards(shards(write_shards(dir))));
  std::multiset<std::string> seen;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    auto batches = from(samples) | shuffle({.seed = 7}) | shard({.rank = rank, .world = 2}) |
                   map(samples.read(), {.concurrency = 4}) |
                   map([](sample s) { return text_of(s); }) | shuffle({.seed = 9, .window = 3}) |
                   batch(2);
    auto whole = collect(runtime, batches);
    EXPECT_EQ(whole.size(), 5u);
    for (auto& each : whole) seen.insert(each.begin(), each.end());
    for (std::size_t first = 1; first < whole.size(); ++first) {
      auto interrupted = runtime.run(batches);
      std::vector<std::vector<std::string>> got;
      while (got.size() < first) got.push_back(*interrupted.wait_next());
      auto rest =
          collect(runtime, batches, {.state = state_from_json(to_json(interrupted.state()))});
      got.insert(got.end(), rest.begin(), rest.end());
      EXPECT_EQ(got, whole) << first;
    }
  }
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 20u);
}

TEST(TarSamples, IndexesAreKeptBesideOrInADirectory) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto pattern = write_shards(dir);
  auto before = sync_wait(runtime, index_shards(shards(pattern))).list_all();
  EXPECT_TRUE(std::filesystem::exists(dir / "3.tar.lade-index"));
  EXPECT_EQ(sync_wait(runtime, index_shards(shards(pattern))).list_all().size(), before.size());
  auto directory = dir / "kept";
  for (int i = 0; i < 2; ++i) {
    sync_wait(runtime, index_shards(shards(pattern), {.index_directory = directory}));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 5);
  }
}

TEST(TarSamples, AnIndexDirectoryThatCannotBeCreatedIsNamed) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  shards all(write_shards(dir));
  auto index_in = [&](const std::string& directory) {
    sync_wait(runtime, index_shards(all, {.index_directory = directory}));
  };
  auto file = dir.write("file", "");
  EXPECT_THAT([&] { index_in(file); }, ThrowsMessage<error>("create the directory of indexes " +
                                                            file + ": Not a directory"));
  EXPECT_THAT([&] { index_in(dir / "absent/kept"); },
              ThrowsMessage<error>(HasSubstr("absent/kept: No such file or directory")));
}

TEST(TarSamples, AChangedArchiveIsRefusedUntilItIsIndexedAgain) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto path = dir.write("a.tar", tar_file("a.txt", "1") + tar_end());
  auto before = sync_wait(runtime, index_shards(shards(path)));
  dir.write("a.tar", tar_file("b.txt", "1") + tar_file("c.txt", "1") + tar_end());
  EXPECT_THAT([&] { sync_wait(runtime, before.read()(sample(path + "/a"))); },
              ThrowsMessage<error>(HasSubstr("has 3072 bytes; when it was indexed, it had 2048")));
  EXPECT_EQ(sync_wait(runtime, index_shards(shards(path))).size(), 2u);
}

TEST(TarSamples, ErrorsNameShardAndSample) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto index = [&](const std::string& archive) {
    sync_wait(runtime, index_shards(shards(dir.write("a.tar", archive))));
  };
  EXPECT_THAT([&] { index(tar_file("a.b", "") + tar_file("a.B", "") + tar_end()); },
              ThrowsMessage<error>(HasSubstr("a.tar: member a.B at byte 1024: its sample has")));
  EXPECT_THAT(
      [&] { index(tar_file("a.b", "") + tar_file("c.b", "") + tar_file("a.b", "") + tar_end()); },
      ThrowsMessage<error>(HasSubstr("a.tar: two samples have the key a")));
  EXPECT_THAT([&] { index("nonsense"); }, ThrowsMessage<error>(HasSubstr("a.tar")));
  EXPECT_THAT([&] { sync_wait(runtime, index_shards(shards(dir / "absent.tar"))); },
              ThrowsMessage<error>(HasSubstr("absent.tar: No such file")));
  EXPECT_THAT([&] { (void)index_shards(shards("{a,a}.tar")); },
              ThrowsMessage<error>(HasSubstr("a.tar is listed twice")));
  EXPECT_THAT([&] { (void)index_shards(shards("a"), {.concurrency = 0}); },
              ThrowsMessage<error>(HasSubstr("concurrency")));
  auto one = sync_wait(runtime, index_shards(shards(dir.write("b.tar", archive_of(0, 1)))));
  EXPECT_THAT([&] { sync_wait(runtime, one.read()(sample("elsewhere/b.tar/x"))); },
              ThrowsMessage<error>(HasSubstr("read elsewhere/b.tar/x: no indexed shard")));
}

TEST(TarSamples, ErrorsShowNoSecretsOfShards) {
  const std::string url = "tars://u:secret@h/a.tar?sig=secret";
  auto remote = std::make_shared<test::counted_store>();
  mount("tars://", remote);
  runtime runtime({.threads = 2});
  auto index = [&](const std::string& archive) {
    remote->put(url, archive);
    return sync_wait(runtime, index_shards(shards(url), {.read = {.label = "cls"}}));
  };
  auto says = [](const char* text) { return ThrowsMessage<error>(HasSubstr(text)); };
  EXPECT_THAT([&] { index(tar_file("a.b", "") + tar_file("a.b", "") + tar_end()); },
              says("index tars://h/a.tar?sig=...: member a.b"));
  EXPECT_THAT([&] { (void)index_shards(shards("{" + url + "," + url + "}")); },
              says("index shards: tars://h/a.tar?sig=... is listed twice"));
  auto one = index(tar_file("a.cls", "x") + tar_end());
  EXPECT_THAT([&] { sync_wait(runtime, one.read()(one.list_all()[0])); },
              says("read the label of tars://h/a.tar?sig=...: its field"));
  EXPECT_THAT([&] { sync_wait(runtime, one.read()(sample(url + "/b"))); },
              says("read tars://h/a.tar?sig=...: no indexed shard"));
  unmount("tars://");
}

// Without a strong entity tag, an archive cannot be distinguished from another of the same size.
TEST(TarSamples, OfAnObjectWithoutATagAreIndexedEachTime) {
  temp_dir dir;
  auto remote = std::make_shared<test::counted_store>();
  remote->opens_ranges = true;
  mount("untagged://", remote);
  runtime runtime({.threads = 2});
  auto indexed = [&](const std::string& key, std::string tag) {
    remote->put("untagged://h/a.tar", tar_file(key + ".txt", key) + tar_end(), std::move(tag));
    auto samples = sync_wait(
        runtime, index_shards(shards("untagged://h/a.tar"), {.index_directory = dir / "indexes"}));
    auto read = sync_wait(runtime, samples.read()(samples.list_all().at(0)));
    return std::string(read.field("txt").bytes().text());
  };
  for (auto* key : {"a", "b"}) EXPECT_EQ(indexed(key, ""), key);
  EXPECT_TRUE(std::filesystem::is_empty(dir / "indexes"));
  EXPECT_EQ(indexed("c", "v1"), "c");
  EXPECT_FALSE(std::filesystem::is_empty(dir / "indexes"));
  unmount("untagged://");
}

// Of a URL of a file, too, the time of modification decides: there is no entity tag.
TEST(TarSamples, OfAFileThatHasChangedAreThoseThatItHasNow) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto indexes = dir / "indexes";
  auto keys_of = [&](const std::string& name) {
    shards one(std::vector<std::string>{name});
    std::string keys;
    for (auto& each :
         sync_wait(runtime, index_shards(one, {.index_directory = indexes})).list_all())
      keys += each.key().substr(each.key().rfind('/') + 1);
    return keys;
  };
  for (std::string before : {"", "file://"})
    for (std::string key : {"a", "b"}) {
      auto path = dir.write("a.tar", tar_file(key + ".txt", "1") + tar_end());
      auto when = std::filesystem::last_write_time(path);
      std::filesystem::last_write_time(path, when + std::chrono::seconds(key == "b"));
      EXPECT_EQ(keys_of(before + path), key);
      EXPECT_EQ(keys_of(before + path), key);
    }
}

TEST(TarSamples, MoreShardsThanAreKeptOpenAreRead) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  for (int i = 0; i < 150; ++i)
    dir.write(std::to_string(i) + ".tar", tar_file("k.txt", std::to_string(i)) + tar_end());
  auto samples = sync_wait(runtime, index_shards(shards(dir / "{0..149}.tar")));
  for (int epoch = 0; epoch < 2; ++epoch)
    EXPECT_EQ(collect(runtime, from(samples) | map(samples.read(), {.concurrency = 16})).size(),
              150u);
}

}  // namespace lade::io::tar_samples_test
