#include <lade/error.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/io/formats/tar_samples.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/shard.hpp>
#include <lade/shuffle.hpp>
#include <lade/state.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "../../support/pipelines.hpp"
#include "../../support/temp_dir.hpp"
#include "tar_bytes.hpp"

namespace lade::io::webdataset_test {

using test::collect;
using test::tar_end;
using test::tar_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing_support::temp_dir;

// "KEY field=text field=text", with the key behind the shard.
static std::string text_of(const sample& from, const std::string& shard) {
  auto text = from.key().substr(shard.size() + 1);
  for (auto& field : from.fields()) text += " " + field.name() + "=" + std::string(field.text());
  return text;
}

static std::vector<std::string> read(const temp_dir& dir, const std::string& archive,
                                     const read_tar_options& options = {}) {
  runtime runtime({.threads = 2});
  auto path = dir.write("a.tar", archive);
  std::vector<std::string> all;
  auto samples = from(shards(path)) | flat_map(io::read_tar.with(options));
  for (auto& each : collect(runtime, samples)) all.push_back(text_of(each, path));
  return all;
}

TEST(Webdataset, MembersWithOneKeyAreOneSample) {
  temp_dir dir;
  auto archive = tar_file("img/01.jpg", "J1") + tar_file("img/01.seg.PNG", "P1") +
                 tar_file("img/02.jpg", "J2") + tar_file("a.b/02.jpg", "J3") +
                 tar_file("img/01.jpg", "J4") + tar_end();
  EXPECT_THAT(read(dir, archive), ElementsAre("img/01 jpg=J1 seg.png=P1", "img/02 jpg=J2",
                                              "a.b/02 jpg=J3", "img/01 jpg=J4"));
  EXPECT_THAT(read(dir, tar_end()), IsEmpty());
}

TEST(Webdataset, WhatBelongsToNoSampleIsPassedOver) {
  temp_dir dir;
  auto archive = tar_file("README", "x") + tar_file("a.txt", "A") + tar_file("._a.txt", "mac") +
                 tar_file("d/.hidden", "x") + tar_file("__meta__/b.txt", "x") +
                 tar_file("__info__", "x") + tar_file("a.cls", "1") + tar_file("__a.txt", "B") +
                 tar_end();
  EXPECT_THAT(read(dir, archive), ElementsAre("a txt=A cls=1", "__a txt=B"));
}

TEST(Webdataset, ADuplicateFieldIsRefused) {
  temp_dir dir;
  auto archive = tar_file("a.jpg", "1") + tar_file("a.JPG", "2") + tar_end();
  for (auto fields : {"", "cls"})
    EXPECT_THAT([&] { read(dir, archive, {.fields = fields}); },
                ThrowsMessage<error>(HasSubstr("member a.JPG at byte 1536: its sample has a field "
                                               "jpg already")));
}

TEST(Webdataset, ASampleOfTooManyFieldsIsRefused) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  std::string archive;
  for (int i = 0; i < 4096; ++i) archive += tar_file("a." + std::to_string(i), "");
  EXPECT_EQ(read(dir, archive + tar_end()).size(), 1u);
  archive += tar_file("a.last", "") + tar_end();
  auto says = HasSubstr(": its sample has more than 4096 fields");
  EXPECT_THAT([&] { read(dir, archive); }, ThrowsMessage<error>(says));
  auto path = dir.write("a.tar", archive);
  EXPECT_THAT([&] { (void)sync_wait(runtime, index_shards(shards(path))); },
              ThrowsMessage<error>(says));
}

TEST(Webdataset, FieldsBecomeDataAndLabel) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto path = dir.write("a.tar", tar_file("a.jpg", "J") + tar_file("a.cls", "7\n") +
                                     tar_file("a.json", "{}") + tar_file("b.png", "P") +
                                     tar_file("b.cls", "8") + tar_end());
  auto reader = io::read_tar.with({.fields = "cls", .data = "png,jpg", .label = "cls"});
  auto samples = collect(runtime, from(shards(path)) | flat_map(reader));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(text_of(samples[0], path), "a jpg=J cls=7\n");
  EXPECT_EQ(samples[0].label(), 7);
  EXPECT_EQ(samples[0].data().text(), "J");
  EXPECT_EQ(samples[1].data().text(), "P");
  EXPECT_EQ(samples[1].label(), 8);
}

TEST(Webdataset, ASampleWithoutAFieldThatIsAskedForIsRefusedByName) {
  temp_dir dir;
  auto archive = tar_file("a.txt", "1") + tar_file("a.png", "") + tar_end();
  auto refusal = [&](io::read_tar_options options, const char* why) {
    EXPECT_THAT([&] { read(dir, archive, options); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refusal({.label = "cls"}, "a.tar/a: it has no field cls; it has txt, png");
  refusal({.data = "jpg,jpeg"}, "a.tar/a: it has no field jpg or jpeg; it has txt, png");
  refusal({.fields = "text"}, "a.tar/a: it has no field text; it has none");
}

TEST(Webdataset, ALabelThatIsNoIntegerIsRefusedByName) {
  temp_dir dir;
  for (auto text : {"cat", "", "-1", "1.5", "99999999999999999999"})
    EXPECT_THAT([&] { read(dir, tar_file("a.cls", text) + tar_end(), {.label = "cls"}); },
                ThrowsMessage<error>(HasSubstr("a.tar/a: its field cls is no integer from 0 on")));
}

TEST(Webdataset, OptionsThatCannotWorkAreRefused) {
  EXPECT_THROW((void)io::read_tar.with({.chunk_bytes = 0}), error);
  EXPECT_THROW((void)io::read_tar.with({.tar = {.on_damage = on_damage::skip_member}}), error);
}

TEST(Webdataset, ADamagedShardIsSkippedBehindItsGoodSamples) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto bad = tar_file("b.txt", "2");
  bad[0] = '?';
  dir.write("0.tar", tar_file("a.txt", "1") + tar_file("x.txt", "") + bad + tar_end());
  dir.write("1.tar", tar_file("c.txt", "3") + tar_end());
  auto samples = runtime.run(from(shards(dir / "{0..1}.tar")) |
                             flat_map(io::read_tar, {.on_error = on_error::skip}));
  auto all = collect(samples);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].key(), dir / "0.tar/a");
  EXPECT_EQ(all[1].key(), dir / "1.tar/c");
  ASSERT_EQ(samples.failures().size(), 1u);
}

static std::vector<std::string> keys_of(std::vector<sample> samples) {
  std::vector<std::string> keys;
  for (auto& each : samples) keys.push_back(each.key());
  return keys;
}

static std::string archive_of(int shard, int samples) {
  std::string bytes;
  for (int i = 0; i < samples; ++i) {
    auto key = std::to_string(shard) + "-" + std::to_string(i);
    bytes += tar_file(key + ".txt", key) + tar_file(key + ".cls", std::to_string(i));
  }
  return bytes + tar_end();
}

static auto samples_in(const temp_dir& dir, unsigned concurrency) {
  return from(shards(dir / "{0..5}.tar")) | shuffle({.seed = 7}) | shard({.rank = 0, .world = 2}) |
         flat_map(io::read_tar.with({.label = "cls"}), {.concurrency = concurrency});
}

// Stopped after every number of samples, and resumed: the same samples as of a run without a stop.
TEST(Webdataset, ARunResumesExactly) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  for (int i = 0; i < 6; ++i) dir.write(std::to_string(i) + ".tar", archive_of(i, 3 + i * 5 % 7));
  auto whole = keys_of(collect(runtime, samples_in(dir, 1)));
  ASSERT_GT(whole.size(), 9u);
  for (unsigned concurrency : {1u, 4u})
    for (std::size_t first = 1; first <= whole.size(); ++first) {
      auto interrupted = runtime.run(samples_in(dir, concurrency));
      std::vector<std::string> keys;
      while (keys.size() < first) keys.push_back(interrupted.wait_next()->key());
      auto saved = state_from_json(to_json(interrupted.state()));
      auto again = samples_in(dir, first % 2 ? concurrency : 5 - concurrency);
      auto rest = keys_of(collect(runtime, again, {.state = saved}));
      keys.insert(keys.end(), rest.begin(), rest.end());
      EXPECT_EQ(keys, whole) << first << " " << concurrency;
    }
}

// For which there is from_shards.
TEST(Webdataset, AWindowBehindAStreamHasNoState) {
  temp_dir dir;
  runtime runtime({.threads = 3});
  for (int i = 0; i < 6; ++i) dir.write(std::to_string(i) + ".tar", archive_of(i, 3 + i * 5 % 7));
  auto interrupted = runtime.run(samples_in(dir, 4) | shuffle({.seed = 8, .window = 5}));
  ASSERT_TRUE(interrupted.wait_next());
  EXPECT_THAT(
      [&] { interrupted.state(); },
      ThrowsMessage<error>(HasSubstr("read_tar makes several items of one before shuffle")));
}

static std::string gzipped(const temp_dir& dir, const std::string& archive) {
  auto path = dir.write("z.tar", archive);
  EXPECT_EQ(std::system(("gzip -f " + path).c_str()), 0);
  return path + ".gz";
}

TEST(Webdataset, ShardsMayBeCompressed) {
  temp_dir dir;
  runtime runtime({.threads = 2});
  auto path = gzipped(dir, archive_of(3, 100));
  EXPECT_EQ(collect(runtime, from(shards(path)) | flat_map(io::read_tar)).size(), 100u);
}

}  // namespace lade::io::webdataset_test
