#include <lade/checksum.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "bytes.hpp"

namespace lade::io::tfrecord_test {

using test::little;
using test::stream_of;
using test::texts_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static std::string checksum_of(std::string_view bytes) {
  auto crc = crc32c(std::as_bytes(std::span(bytes))).value();
  return little<std::uint32_t>(((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

static std::string record(std::string_view data) {
  auto length = little<std::uint64_t>(data.size());
  return length + checksum_of(length) + std::string(data) + checksum_of(data);
}

// A field of a protocol buffer: its tag, its length, its bytes. All of them are short.
static std::string message(int number, std::string_view bytes) {
  auto size = bytes.size();
  std::string length;
  for (; size > 127; size >>= 7) length += static_cast<char>(size | 128);
  length += static_cast<char>(size);
  return static_cast<char>(number << 3 | 2) + length + std::string(bytes);
}

static std::string feature(std::string_view name, std::string_view list) {
  return message(1, message(1, name) + message(2, list));
}

static std::string bytes_list(const std::vector<std::string>& values) {
  std::string list;
  for (auto& value : values) list += message(1, value);
  return message(1, list);
}

static std::string float_list(const std::vector<float>& values) {
  std::string packed;
  for (auto value : values) packed += little(value);
  return message(2, message(1, packed));
}

static sample parse(std::string_view features, example_options options = {}) {
  auto data = test::buffer_of(message(1, features));
  return parse_example.with(options)(sample("a/0", 3).with_data(data));
}

TEST(Tfrecord, RecordsAreReadHoweverTheFileIsCut) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> records;
    std::string file;
    for (auto n = random() % 20; n > 0; --n) {
      records.push_back(test::random_bytes(random, random() % 2000));
      file += record(records.back());
    }
    auto read = sync_wait(texts_of(read_tfrecords(stream_of(file, 1 + random() % 3000), "a")));
    ASSERT_EQ(read, records);
    auto content = std::make_shared<const memory_reader>(test::buffer_of(file), "a");
    ASSERT_EQ(sync_wait(texts_of(read_tfrecords(std::move(content)))), records);
  }
}

static task<std::vector<const std::byte*>> addresses(async_generator<buffer> from) {
  std::vector<const std::byte*> all;
  while (auto* each = co_await from.next()) all.push_back(each->data());
  co_return all;
}

TEST(Tfrecord, RecordsInOneBufferAreViewsOfIt) {
  auto seen = sync_wait(addresses(read_tfrecords(stream_of(record("abc") + record("de")), "a")));
  EXPECT_EQ(seen[1] - seen[0], 3 + 4 + 12);
}

TEST(Tfrecord, ADamagedLengthIsAnErrorWithItsOffset) {
  auto file = record("abc") + record("def");
  file[19 + 8] ^= 1;
  for (bool skip : {false, true})
    EXPECT_THAT(
        [&] { sync_wait(texts_of(read_tfrecords(stream_of(file), "a", {.skip_damaged = skip}))); },
        ThrowsMessage<error>("read the record at byte 19 of a: its length does not match the "
                             "checksum of the length"));
}

TEST(Tfrecord, DamagedDataIsAnErrorOrSkippedAndCounted) {
  auto file = record("abc") + record("def") + record("ghi");
  file[19 + 13] ^= 1;
  EXPECT_THAT([&] { sync_wait(texts_of(read_tfrecords(stream_of(file), "a"))); },
              ThrowsMessage<error>(
                  "read the record at byte 19 of a: its data does not match the checksum"));
  std::atomic<std::uint64_t> damaged = 0;
  auto read = sync_wait(
      texts_of(read_tfrecords(stream_of(file), "a", {.skip_damaged = true, .damaged = &damaged})));
  EXPECT_THAT(read, ElementsAre("abc", "ghi"));
  EXPECT_EQ(damaged, 1u);
}

TEST(Tfrecord, AnEarlyEndIsAnError) {
  auto file = record("abc") + record("def");
  for (std::size_t bytes = 20; bytes < file.size(); ++bytes)
    EXPECT_THAT([&] { sync_wait(texts_of(read_tfrecords(stream_of(file.substr(0, bytes)), "a"))); },
                ThrowsMessage<error>(HasSubstr("of a: it ends at byte")));
}

TEST(Tfrecord, LongRecordsAreRefused) {
  auto huge = little<std::uint64_t>(~std::uint64_t{0});
  EXPECT_THAT(
      [&] {
        sync_wait(
            texts_of(read_tfrecords(stream_of(record("abcd")), "a", {.max_record_bytes = 3})));
      },
      ThrowsMessage<error>(HasSubstr("it has 4 bytes; max_record_bytes is 3")));
  EXPECT_THROW(sync_wait(texts_of(read_tfrecords(stream_of(huge + checksum_of(huge)), "a",
                                                 {.max_record_bytes = ~std::uint64_t{0}}))),
               error);
}

class TfrecordFile : public testing_support::ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, TfrecordFile,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         testing_support::reactor_name);

TEST_P(TfrecordFile, BecomesSamplesThatAreNumbered) {
  temp_dir dir;
  auto file = record("abc") + record("def") + record("ghi");
  file[19 + 13] ^= 1;
  auto path = dir.write("a.tfrecord", file);
  runtime runtime(options());
  auto samples = sync_wait(
      runtime, test::collect(read_tfrecord.with({.skip_damaged = true})(sample(path, 7))));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].key(), path + "/0");
  EXPECT_EQ(samples[1].key(), path + "/2");
  EXPECT_EQ(samples[1].data().text(), "ghi");
  EXPECT_EQ(samples[1].label(), 7);
  EXPECT_THROW(sync_wait(runtime, test::collect(read_tfrecord(sample(path)))), error);
}

static std::string zstd(const std::string& text) {
  std::string zipped(ZSTD_compressBound(text.size()), '\0');
  zipped.resize(ZSTD_compress(zipped.data(), zipped.size(), text.data(), text.size(), 3));
  return zipped;
}

TEST_P(TfrecordFile, MayBeCompressed) {
  temp_dir dir;
  std::string text(100'000, 'x');
  auto path = dir.write("a.tfrecord.zst", zstd(record("abc") + record(text)));
  runtime runtime(options());
  auto samples = sync_wait(runtime, test::collect(read_tfrecord(sample(path))));
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_TRUE(samples[1].data().text() == text);
  EXPECT_THAT(
      [&] {
        sync_wait(runtime,
                  test::collect(read_tfrecord.with({.max_file_bytes = 1000})(sample(path))));
      },
      ThrowsMessage<error>(HasSubstr(path)));
}

static std::string gzip(const std::string& text) {
  std::string zipped(text.size() + 1000, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(zipped.data());
  stream.avail_out = static_cast<uInt>(zipped.size());
  deflate(&stream, Z_FINISH);
  zipped.resize(stream.total_out);
  deflateEnd(&stream);
  return zipped;
}

TEST_P(TfrecordFile, ThatClaimsARecordOfMuchIsRefusedInLittleMemory) {
  temp_dir dir;
  auto length = little(std::uint64_t{1} << 60);
  auto file = record("abc") + length + checksum_of(length) + std::string(1000, 'x');
  for (auto& content : {file, gzip(file), zstd(file)}) {
    auto path = dir.write("a.tfrecord", content);
    runtime runtime(options());
    auto read_up_to = [&](std::uint64_t most) {
      sync_wait(runtime,
                test::collect(read_tfrecord.with({.max_record_bytes = most})(sample(path))));
    };
    EXPECT_THAT([&] { read_up_to(1 << 30); },
                ThrowsMessage<error>("read the record at byte 19 of " + path +
                                     ": it has 1152921504606846976 bytes; max_record_bytes is "
                                     "1073741824"));
    EXPECT_THAT([&] { read_up_to(~std::uint64_t{0}); },
                ThrowsMessage<error>("read a record of " + path +
                                     ": it ends at byte 1031, 1152921504606845980 bytes too "
                                     "early"));
    EXPECT_LE(runtime.memory().stats().peak_bytes, std::size_t{20} << 20);
  }
}

// 0x088b1f bytes: a length that begins as gzip does.
TEST_P(TfrecordFile, IsNotTakenForGzipByItsFirstLength) {
  temp_dir dir;
  auto path = dir.write("a.tfrecord", record(std::string(0x088b1f, 'x')));
  runtime runtime(options());
  auto samples = sync_wait(runtime, test::collect(read_tfrecord(sample(path))));
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].data().size(), 0x088b1fu);
}

TEST(Example, FeaturesBecomeFields) {
  auto integers =
      message(3, message(1, std::string("\x05\x80\x01") + std::string(9, '\xff') + "\x01"));
  auto read =
      parse(feature("image", bytes_list({"abc"})) + feature("names", bytes_list({"x", "y"})) +
            feature("box", float_list({1.5f, -2})) + feature("score", float_list({0.5f})) +
            feature("class", message(3, message(1, "\x07"))) + feature("ids", integers) +
            feature("none", "") + feature("no bytes", bytes_list({})));
  EXPECT_EQ(read.key(), "a/0");
  EXPECT_EQ(read.label(), 3);
  EXPECT_FALSE(read.has_data());
  EXPECT_EQ(read.fields().size(), 7u);
  EXPECT_EQ(read.field("image").bytes().text(), "abc");
  EXPECT_EQ(read.field("names/0").bytes().text(), "x");
  EXPECT_EQ(read.field("names/1").bytes().text(), "y");
  EXPECT_EQ(read.field("box").tensor().data<float>()[1], -2);
  EXPECT_EQ(read.field("score").number(), 0.5);
  EXPECT_EQ(read.field("class").integer(), 7);
  auto& ids = read.field("ids").tensor();
  EXPECT_EQ(ids.shape(), dimensions({3}));
  EXPECT_THAT(std::vector(ids.data<std::int64_t>(), ids.data<std::int64_t>() + 3),
              ElementsAre(5, 128, -1));
}

TEST(Example, ListsOfOneNumberCanBeTensors) {
  auto read = parse(feature("class", message(3, message(1, "\x07"))) +
                        feature("score", float_list({0.5f})) + feature("empty", float_list({})),
                    {.scalars = false});
  EXPECT_EQ(read.field("class").tensor().data<std::int64_t>()[0], 7);
  EXPECT_EQ(read.field("score").tensor().data<float>()[0], 0.5f);
  EXPECT_EQ(read.field("empty").tensor().shape(), dimensions({0}));
}

TEST(Example, UnpackedListsAreRead) {
  auto floats = "\x0d" + little(1.0f) + "\x0d" + little(2.0f);
  auto read =
      parse(feature("f", message(2, floats)) + feature("i", message(3, "\x08\x01\x08\x02")));
  EXPECT_EQ(read.field("f").tensor().data<float>()[1], 2);
  EXPECT_EQ(read.field("i").tensor().data<std::int64_t>()[1], 2);
}

TEST(Example, AnythingElseIsRefusedByName) {
  auto refusal = [](std::string_view data, example_options options = {}) -> std::string {
    try {
      parse_example.with(options)(sample("a/0").with_data(test::buffer_of(data)));
    } catch (const error& refused) {
      return refused.what();
    }
    return "none";
  };
  auto one = feature("a", bytes_list({"x"}));
  EXPECT_EQ(refusal(message(1, one)), "none");
  EXPECT_EQ(refusal(message(2, one)), "parse a/0: byte 1: field 2, which it does not have");
  EXPECT_EQ(refusal(message(1, one + one)), "parse a/0: it has the feature \"a\" twice");
  EXPECT_EQ(refusal(message(1, one).substr(0, 8)), "parse a/0: byte 2: a value that ends early");
  EXPECT_EQ(refusal("\x0b"), "parse a/0: byte 1: a field of an unknown type");
  EXPECT_THAT(refusal(std::string(11, '\xff')), HasSubstr("more than 64 bits"));
  EXPECT_THAT(refusal(message(1, feature("a", message(4, "")))), HasSubstr("unknown type"));
  EXPECT_THAT(refusal(message(1, feature("a", bytes_list({}) + float_list({})))),
              HasSubstr("two lists"));
  EXPECT_THAT(refusal(message(1, feature("a", message(2, message(1, "abc"))))),
              HasSubstr("ends early"));
  EXPECT_THAT(refusal(message(1, feature("a", bytes_list({"", "", ""}))), {.max_fields = 2}),
              HasSubstr("more fields than max_fields, 2"));
}

}  // namespace lade::io::tfrecord_test
