#include <lade/error.hpp>
#include <lade/flat_map.hpp>
#include <lade/from.hpp>
#include <lade/io/formats/mds.hpp>
#include <lade/io/store.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../../../io/formats/mds_index.hpp"
#include "../../../io/formats/mds_sample.hpp"
#include "../../support/counted_store.hpp"
#include "../../support/reactors.hpp"
#include "../../support/temp_dir.hpp"
#include "bytes.hpp"

namespace lade::io::mds_test {

using test::little;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;
using testing_support::temp_dir;

struct column {
  std::string name, encoding, size;  // a size of "null" varies
};

static std::string shard_of(const std::vector<std::string>& samples) {
  std::string config = "{}";
  auto bytes = little(static_cast<std::uint32_t>(samples.size()));
  auto end = static_cast<std::uint32_t>(4 * (samples.size() + 2) + config.size());
  bytes += little(end);
  for (auto& each : samples) bytes += little(end += static_cast<std::uint32_t>(each.size()));
  bytes += config;
  for (auto& each : samples) bytes += each;
  return bytes;
}

static std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (auto& text : texts) all += (all.empty() ? "" : ",") + text;
  return "[" + all + "]";
}

static std::string quoted(const std::string& text) { return '"' + text + '"'; }

// A shard of the index. `zip`: the name of the compressed file, if there is one.
static std::string shard_index(const std::vector<column>& columns, std::size_t bytes,
                               std::size_t samples, const std::string& name = "shard.00000.mds",
                               const std::string& compression = "", const std::string& zip = "") {
  std::vector<std::string> names, encodings, sizes;
  for (auto& each : columns) {
    names.push_back(quoted(each.name));
    encodings.push_back(quoted(each.encoding));
    sizes.push_back(each.size);
  }
  return "{\"column_encodings\":" + joined(encodings) + ",\"column_names\":" + joined(names) +
         ",\"column_sizes\":" + joined(sizes) +
         ",\"compression\":" + (compression.empty() ? "null" : quoted(compression)) +
         ",\"format\":\"mds\",\"hashes\":[],\"raw_data\":{\"basename\":" + quoted(name) +
         ",\"bytes\":" + std::to_string(bytes) +
         ",\"hashes\":{}},\"samples\":" + std::to_string(samples) +
         ",\"size_limit\":67108864,\"version\":2,\"zip_data\":" +
         (zip.empty() ? "null" : "{\"basename\":" + quoted(zip) + ",\"bytes\":1,\"hashes\":{}}") +
         "}";
}

static std::string index_of(const std::vector<std::string>& shards) {
  return "{\"shards\":" + joined(shards) + ",\"version\":2}";
}

static const std::vector<column> text_and_number{{"text", "str", "null"}, {"n", "int", "8"}};

static std::string text_sample(const std::string& text, std::int64_t n) {
  return little(static_cast<std::uint32_t>(text.size())) + text + little(n);
}

// The fields of one value of a column, in a sample after so many other bytes.
static field value_of(const std::string& encoding, const std::string& bytes,
                      std::size_t before = 0) {
  std::vector<mds_column> columns{parse_mds_column("c", encoding)};
  auto sized = (columns[0].size ? "" : little(static_cast<std::uint32_t>(bytes.size()))) + bytes;
  auto data = test::buffer_of(std::string(before, 'x') + sized).slice(before, sized.size());
  auto values = split_mds_sample(data.bytes(), columns, "s/0");
  return mds_fields(values, data, buffer(unaligned_bytes(values)), "s/0")[0];
}

template <class T>
static std::vector<T> values_of(const tensor& from) {
  return {from.data<T>(), from.data<T>() + from.spec().elements()};
}

TEST(MdsSample, HasAFieldOfEachEncoding) {
  EXPECT_EQ(value_of("bytes", "a\0b").bytes().size(), 1u);
  EXPECT_EQ(value_of("jpeg", "j").bytes().text(), "j");
  EXPECT_EQ(value_of("jpeg:90", "j").bytes().text(), "j");
  EXPECT_EQ(value_of("png", "p").bytes().text(), "p");
  EXPECT_EQ(value_of("str", "h\u00e4").type(), field::kind::text);
  EXPECT_EQ(value_of("json", "{\"a\":1}").text(), "{\"a\":1}");
  EXPECT_EQ(value_of("str_decimal", "1.10").text(), "1.10");
  EXPECT_EQ(value_of("str_int", "-12").integer(), -12);
  EXPECT_EQ(value_of("str_float", "1e+16").number(), 1e16);
  EXPECT_EQ(value_of("int", little<std::int64_t>(-3)).integer(), -3);
  EXPECT_EQ(value_of("uint8", "\xff").integer(), 255);
  EXPECT_EQ(value_of("int8", "\xff").integer(), -1);
  EXPECT_EQ(value_of("uint16", little<std::uint16_t>(65535)).integer(), 65535);
  EXPECT_EQ(value_of("int16", little<std::int16_t>(-2)).integer(), -2);
  EXPECT_EQ(value_of("uint32", little(~0u)).integer(), 4294967295);
  EXPECT_EQ(value_of("int32", little(-5)).integer(), -5);
  EXPECT_EQ(value_of("uint64", little<std::uint64_t>(5)).integer(), 5);
  EXPECT_THROW(value_of("uint64", little(~std::uint64_t{0})), error);
  EXPECT_EQ(value_of("float32", little(0.5f)).number(), 0.5);
  EXPECT_EQ(value_of("float64", little(0.1)).number(), 0.1);
}

TEST(MdsSample, HalfPrecisionIsExact) {
  auto half = [](std::uint16_t bits) { return value_of("float16", little(bits)).number(); };
  EXPECT_EQ(half(0x3c00), 1);
  EXPECT_EQ(half(0xc100), -2.5);
  EXPECT_EQ(half(0x0001), std::ldexp(1, -24));
  EXPECT_EQ(half(0x7bff), 65504);
  EXPECT_EQ(half(0xfc00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(half(0x7e00)));
}

TEST(MdsSample, ArraysAreTensorsWhereverTheyLie) {
  auto numbers = little<std::int16_t>(1) + little<std::int16_t>(-2);
  for (std::size_t before = 0; before < 8; ++before) {
    auto fixed = value_of("ndarray:int16:2,1", numbers, before).tensor();
    EXPECT_EQ(fixed.shape(), dimensions({2, 1}));
    EXPECT_THAT(values_of<std::int16_t>(fixed), ElementsAre(1, -2));
    auto shaped = value_of("ndarray:int16", std::string("\x08\x01\x02", 3) + numbers, before);
    EXPECT_EQ(shaped.tensor().shape(), dimensions({1, 2}));
    auto any = value_of("ndarray", std::string("\x11\x05\x02\x00", 4) + numbers, before).tensor();
    EXPECT_EQ(any.shape(), dimensions({2}));
    EXPECT_THAT(values_of<std::int16_t>(any), ElementsAre(1, -2));
  }
}

TEST(MdsSample, ThatContradictsItsColumnsIsRefused) {
  auto refusal = [](const std::string& encoding, const std::string& bytes) -> std::string {
    try {
      std::vector<mds_column> columns{parse_mds_column("c", encoding)};
      auto values = split_mds_sample(std::as_bytes(std::span(bytes)), columns, "s/0");
      auto data = test::buffer_of(bytes);
      mds_fields(split_mds_sample(data.bytes(), columns, "s/0"), data,
                 buffer(unaligned_bytes(values) + 64), "s/0");
    } catch (const error& refused) {
      return refused.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal("str", little(3u) + "ab"),
            "read column \"c\" of s/0: 3 bytes; the sample has 2 left");
  EXPECT_EQ(refusal("int", "abc"), "read column \"c\" of s/0: 8 bytes; the sample has 3 left");
  EXPECT_EQ(refusal("uint8", "ab"), "read s/0: 1 bytes follow its columns");
  EXPECT_THAT(refusal("str", little(1u) + "\xff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal("str_int", little(2u) + "1x"), HasSubstr("no number"));
  EXPECT_THAT(refusal("ndarray:uint8", little(3u) + "\x04\x03z"),
              HasSubstr("are no array [3] of u8"));
  EXPECT_THAT(refusal("ndarray", little(1u) + "\x07"), HasSubstr("unknown type"));
  EXPECT_THAT(refusal("ndarray:uint8", little(1u) + "\x24"), HasSubstr("9 dimensions"));
  EXPECT_THAT(refusal("ndarray:uint8", little(9u) + "\x07" + little(~std::uint64_t{0})),
              HasSubstr("beyond 2^63"));
  EXPECT_THAT(refusal("ndarray:uint8", little(17u) + "\x0b" + little(std::uint64_t{1} << 62) +
                                           little(std::uint64_t{4})),
              HasSubstr("are no array"));
}

TEST(MdsIndex, ThatIsNotOneIsRefused) {
  auto refusal = [](const std::string& text) -> std::string {
    try {
      (void)parse_mds_index(text, "index.json");
    } catch (const error& refused) {
      return refused.what();
    }
    return "none";
  };
  auto one = [&](const std::vector<column>& columns, std::size_t bytes = 100,
                 const std::string& name = "a.mds") {
    return refusal(index_of({shard_index(columns, bytes, 1, name)}));
  };
  EXPECT_EQ(one(text_and_number), "none");
  EXPECT_THAT(refusal("{\"shards\":[],\"version\":3}"), HasSubstr("a version other than 2"));
  EXPECT_THAT(refusal("{\"shards\":[{}]}"), HasSubstr("shard 0 of MDS: its format is \"\""));
  EXPECT_THAT(refusal("{\"shards\":[{\"format\":\"mds\"}]}"), HasSubstr("lacks raw_data"));
  EXPECT_EQ(one({{"c", "pkl", "null"}}), "open column \"c\" of MDS: its encoding is pkl");
  EXPECT_THAT(one({{"c", "ndarray:bool", "null"}}), HasSubstr("its encoding is ndarray:bool"));
  EXPECT_THAT(one({{"c", "ndarray:int8:0", "0"}}), HasSubstr("its encoding"));
  EXPECT_THAT(one({{"c", "ndarray:int64:9223372036854775807", "8"}}), HasSubstr("its encoding"));
  EXPECT_THAT(one({{"c", "int", "4"}}), HasSubstr("size of column \"c\" is not that"));
  EXPECT_THAT(one({{"c", "int", "8"}, {"c", "int", "8"}}), HasSubstr("two columns are called"));
  EXPECT_THAT(one(text_and_number, 11), HasSubstr("11 bytes cannot hold 1 samples"));
  EXPECT_EQ(one(text_and_number, ~std::uint32_t{0}), "none");
  for (auto bytes : {std::size_t{1} << 32, std::size_t{1} << 60, ~std::size_t{0}})
    EXPECT_THAT(refusal(index_of({shard_index(text_and_number, bytes, bytes / 4 - 2)})),
                AllOf(HasSubstr("read index.json: "),
                      HasSubstr("shard 0: " + std::to_string(bytes) +
                                " bytes are more than offsets of 32 bits reach")));
  EXPECT_THAT(refusal("{\"shards\":[{\"x\":" + std::string(100'000, '[')),
              HasSubstr("more than 64 levels"));
  for (auto name : {"../a", "/a", "a/../../b", "..", ""})
    EXPECT_THAT(one(text_and_number, 100, name), HasSubstr("not a file below the index"));
  EXPECT_THAT(refusal(index_of({shard_index({}, 100, 1, "a", "snappy", "a.snappy")})),
              HasSubstr("its compression is \"snappy\""));
}

class Mds : public testing_support::ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, Mds, testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

static std::string text_of(const sample& from) {
  return std::string(from.field("text").text()) + " " + std::to_string(from.field("n").integer());
}

// Two shards with three samples.
static void write_dataset(const temp_dir& dir) {
  auto first = shard_of({text_sample("a", 1), text_sample("", 2)});
  auto second = shard_of({text_sample("ccc", 3)});
  dir.write("0.mds", first);
  dir.write("sub/1.mds", second);
  dir.write("index.json", index_of({shard_index(text_and_number, first.size(), 2, "0.mds"),
                                    shard_index(text_and_number, second.size(), 1, "sub/1.mds")}));
}

TEST_P(Mds, IsReadByIndexAndByShard) {
  temp_dir dir;
  write_dataset(dir);
  runtime runtime(options());
  auto data = sync_wait(runtime, open_mds(dir.path().string()));
  EXPECT_EQ(data.size(), 3u);
  std::vector<std::string> keys, texts, by_shard;
  auto indexed =
      from_index(data.size(), std::identity(), {.identity = data.identity()}) | map(data);
  for (auto& each : runtime.run(indexed)) {
    keys.push_back(each.key());
    texts.push_back(text_of(each));
  }
  for (auto& each : runtime.run(from(data.shards()) | flat_map(read_mds_shard(data))))
    by_shard.push_back(text_of(each));
  EXPECT_THAT(texts, ElementsAre("a 1", " 2", "ccc 3"));
  EXPECT_THAT(keys, ElementsAre(dir / "0.mds/0", dir / "0.mds/1", dir / "sub/1.mds/0"));
  EXPECT_EQ(by_shard, texts);
  EXPECT_THAT([&] { (void)sync_wait(runtime, data(3)); },
              ThrowsMessage<error>(HasSubstr("there is no sample 3 of 3")));
  EXPECT_THROW(sync_wait(runtime, test::collect(read_mds_shard(data)(sample("x")))), error);
}

TEST_P(Mds, CompressedShardsAreReadAsAWhole) {
  temp_dir dir;
  auto shard = shard_of({text_sample("a", 1), text_sample(std::string(5000, 'b'), 2)});
  std::string zipped(ZSTD_compressBound(shard.size()), '\0');
  zipped.resize(ZSTD_compress(zipped.data(), zipped.size(), shard.data(), shard.size(), 3));
  dir.write("0.mds.zstd", zipped);
  runtime runtime(options());
  auto open = [&](std::size_t bytes) {
    dir.write("index.json",
              index_of({shard_index(text_and_number, bytes, 2, "0.mds", "zstd:7", "0.mds.zstd")}));
    return sync_wait(runtime, open_mds(dir.path().string()));
  };
  auto data = open(shard.size());
  auto read = sync_wait(runtime, test::collect(read_mds_shard(data)(data.shards()[0])));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(text_of(read[0]), "a 1");
  EXPECT_EQ(read[1].field("text").text().size(), 5000u);
  EXPECT_THAT([&] { (void)sync_wait(runtime, data(0)); },
              ThrowsMessage<error>(HasSubstr("read it as a whole, with read_mds_shard")));
  auto refusal_of = [&](const mds& of, mds_options limits) -> std::string {
    try {
      (void)sync_wait(runtime, test::collect(read_mds_shard(of, limits)(of.shards()[0])));
    } catch (const error& refused) {
      return refused.what();
    }
    return "none";
  };
  auto name = dir / "0.mds.zstd";
  EXPECT_EQ(refusal_of(data, {.max_bytes = shard.size()}), "none");
  EXPECT_EQ(refusal_of(data, {.max_bytes = 5000}), "read the shard " + name + ": it has " +
                                                       std::to_string(shard.size()) +
                                                       " bytes; max_bytes is 5000");
  EXPECT_EQ(refusal_of(open(1000), {}), "read the shard " + name + ": sample 1 is at bytes 31 to " +
                                            std::to_string(shard.size()));
  EXPECT_EQ(refusal_of(open(1000), {.max_bytes = 1000}),
            "decompress " + name + ": it expands to more than max_bytes, 1000");
}

TEST_P(Mds, ShardsThatContradictTheIndexAreRefused) {
  temp_dir dir;
  runtime runtime(options());
  auto good = shard_of({text_sample("a", 1), text_sample("b", 2)});
  auto refusals = [&](const std::string& shard, std::size_t bytes) {
    dir.write("0.mds", shard);
    dir.write("index.json", index_of({shard_index(text_and_number, bytes, 2, "0.mds")}));
    auto data = sync_wait(runtime, open_mds(dir.path().string()));
    std::pair<std::string, std::string> what{"none", "none"};
    try {
      (void)sync_wait(runtime, data(0));
    } catch (const error& refused) {
      what.first = refused.what();
    }
    try {
      (void)sync_wait(runtime, test::collect(read_mds_shard(data)(data.shards()[0])));
    } catch (const error& refused) {
      what.second = refused.what();
    }
    return what;
  };
  auto changed = [&](std::size_t at, std::uint32_t value) {
    auto shard = good;
    return refusals(shard.replace(at, 4, little(value)), good.size());
  };
  EXPECT_EQ(refusals(good, good.size()), std::pair(std::string("none"), std::string("none")));
  auto longer = refusals(good + "x", good.size());
  EXPECT_THAT(longer.first, HasSubstr("bytes; the index says"));
  EXPECT_THAT(longer.second, HasSubstr("has data after its last sample"));
  EXPECT_THAT(refusals(good.substr(0, 30), good.size()).second, HasSubstr("it ends at byte"));
  EXPECT_THAT(changed(0, 3).second, HasSubstr("it has 3 samples; the index says 2"));
  EXPECT_THAT(changed(4, 0).first, HasSubstr("sample 0 is at bytes 0 to"));
  EXPECT_THAT(changed(4, 0).second, HasSubstr("sample 0 is at bytes 0 to"));
  EXPECT_THAT(changed(8, 0).first, HasSubstr("to 0"));
  EXPECT_THAT(changed(8, 0).second, HasSubstr("to 0"));
  EXPECT_THAT(changed(8, ~0u).first, HasSubstr("to 4294967295"));
  EXPECT_THAT(changed(8, ~0u).second, HasSubstr("to 4294967295"));
}

TEST_P(Mds, ErrorsShowNoSecretsOfItsUrl) {
  auto remote = std::make_shared<test::counted_store>();
  mount("mds://", remote);
  runtime runtime(options());
  const std::string url = "mds://u:secret@h/d/";
  auto good = shard_of({text_sample("a", 1)});
  auto damaged = good;
  damaged.replace(good.size() - 13, 4, little(99u));  // the length of its text
  auto refusals = [&](const std::string& shard, std::size_t bytes, bool compressed = false) {
    remote->put(url + "index.json",
                index_of({shard_index(text_and_number, bytes, 1, "0.mds", compressed ? "gz" : "",
                                      compressed ? "0.mds" : "")}));
    remote->put(url + "0.mds", shard);
    auto data = sync_wait(runtime, open_mds(url));
    auto says = ThrowsMessage<error>(AllOf(HasSubstr("mds://h/d/0.mds"), Not(HasSubstr("secret"))));
    EXPECT_THAT([&] { (void)sync_wait(runtime, data(0)); }, says);
    EXPECT_THAT(
        [&] { (void)sync_wait(runtime, test::collect(read_mds_shard(data)(data.shards()[0]))); },
        says);
  };
  refusals(damaged, damaged.size());
  refusals(good.substr(0, 10), good.size());
  refusals(std::string("\x1f\x8bnonsense"), good.size(), true);
  auto data = sync_wait(runtime, open_mds(url));
  EXPECT_THAT(
      [&] { (void)sync_wait(runtime, data(1)); },
      ThrowsMessage<error>("read a sample of mds://h/d/index.json: there is no sample 1 of 1"));
  EXPECT_THAT(
      [&] { (void)sync_wait(runtime, test::collect(read_mds_shard(data)(sample(url + "x")))); },
      ThrowsMessage<error>("read the shard mds://h/d/x: it is not listed in mds://h/d/index.json"));
  unmount("mds://");
}

TEST_P(Mds, WithoutAnIndexIsRefused) {
  temp_dir dir;
  runtime runtime(options());
  EXPECT_THAT([&] { (void)sync_wait(runtime, open_mds(dir.path().string())); },
              ThrowsMessage<error>("open " + (dir / "index.json") + ": No such file or directory"));
}

}  // namespace lade::io::mds_test
