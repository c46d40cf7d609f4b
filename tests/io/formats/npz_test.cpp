#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "oracle.hpp"
#include "zip_writer.hpp"

#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/npz.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lade::io::npz_test {

using namespace lade::test;
using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// An array of bytes.
static std::string npy_of(const std::string& elements) {
  auto header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                std::to_string(elements.size()) + ",)}";
  return std::string("\x93NUMPY\1\0", 8) + little(header.size(), 2) + header + elements;
}

static std::vector<field> read_all(const buffer& file, zip_options options = {}) {
  return sync_wait(read_npz(std::make_shared<memory_reader>(file, "a.npz"), options));
}

static std::string described(const std::string& name, const std::string& elements) {
  return name + "\nu8\n" + std::to_string(elements.size()) + "\n" + elements;
}

TEST(Npz, ArraysBecomeFieldsAndOtherMembersBytes) {
  auto fields = read_all(buffer_of(zip_of({{"x.npy", npy_of("abc")},
                                           {"d/", ""},
                                           {"notes.txt", "text"},
                                           {"y.npy", npy_of("d"), true}})));
  EXPECT_EQ(describe(fields),
            described("x", "abc") + "notes.txt\nbytes\n4\ntext" + described("y", "d"));
}

TEST(Npz, TwoArraysOfOneNameAreRefused) {
  auto file = buffer_of(zip_of({{"x.npy", npy_of("a")}, {"x", "b"}}));
  EXPECT_THAT([&] { read_all(file); }, ThrowsMessage<error>("read a.npz: two arrays are called x"));
}

TEST(Npz, CompressedArraysAreBoundedTogether) {
  auto array = npy_of(std::string(1000, 'x'));
  auto file = buffer_of(zip_of({{"x.npy", array, true}, {"y.npy", array, true}, {"z.npy", array}}));
  EXPECT_EQ(read_all(file, {.max_bytes = 2 * array.size()}).size(), 3u);
  EXPECT_THAT([&] { read_all(file, {.max_bytes = 2 * array.size() - 1}); },
              ThrowsMessage<error>(HasSubstr("more than max_bytes")));
}

TEST(Npz, ErrorsNameTheMalformedArray) {
  EXPECT_THAT([] { read_all(buffer_of(zip_of({{"x.npy", "text"}}))); },
              ThrowsMessage<error>(HasSubstr("read array a.npz/x.npy: it does not begin")));
}

TEST(Npz, AnArrayOfComplexNumbersIsNamedWithWhatToDo) {
  auto header = std::string("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}");
  auto array =
      std::string("\x93NUMPY\1\0", 8) + little(header.size(), 2) + header + std::string(8, '\0');
  EXPECT_THAT([&] { read_all(buffer_of(zip_of({{"x.npy", array}}))); },
              ThrowsMessage<error>(HasSubstr("read array a.npz/x.npy: elements of type '<c8' are "
                                             "not supported; save the view of it of type '<f4'")));
}

TEST(Npz, AnArrayThatClaimsMoreThanItHasIsRefusedByNameInLittleMemory) {
  for (auto& [shape, bytes] : {std::pair("1152921504606846976,", "9223372036854775808"),
                               std::pair("4294967296, 4294967296, 2", "18446744073709551615")}) {
    auto header = std::string("{'descr': '<f8', 'fortran_order': False, 'shape': (") + shape + ")}";
    auto array = std::string("\x93NUMPY\1\0", 8) + little(header.size(), 2) + header + "abc";
    for (bool deflate : {false, true}) {
      auto file = buffer_of(zip_of({{"x.npy", array, deflate}}));
      auto refusal = ThrowsMessage<error>(AllOf(HasSubstr("read array a.npz/x.npy: an array f64["),
                                                HasSubstr(std::string("] needs ") + bytes +
                                                          " bytes behind its header, and there "
                                                          "are 3")));
      EXPECT_THAT([&] { decode_npz()(sample("a.npz").with_data(file)); }, refusal);
      runtime runtime;
      auto from = std::make_shared<memory_reader>(file, "a.npz");
      EXPECT_THAT([&] { sync_wait(runtime, read_npz(from)); }, refusal);
      EXPECT_LE(runtime.memory().stats().peak_bytes, 4096u);
    }
  }
}

TEST(Npz, ASampleGetsAFieldForEachArray) {
  auto from = sample("a.npz", 7)
                  .with_data(buffer_of(zip_of({{"x.npy", npy_of("abc")}})))
                  .with_field(field("id", 5));
  auto decoded = decode_npz()(from);
  EXPECT_EQ(decoded.label(), 7);
  EXPECT_FALSE(decoded.has_data());
  EXPECT_EQ(decoded.field("id").integer(), 5);
  EXPECT_EQ(decoded.field("x").tensor().shape(), dimensions{3});
  EXPECT_THAT([] { decode_npz()(sample("none.npz")); },
              ThrowsMessage<error>(HasSubstr("read none.npz: it has no end")));
}

// An array of numbers in the byte order that `order` says.
static std::string numbers_of(const std::string& order, const std::string& elements) {
  auto header = "{'descr': '" + order + "i4', 'fortran_order': False, 'shape': (" +
                std::to_string(elements.size() / 4) + ",)}\n";
  return std::string("\x93NUMPY\1\0", 8) + little(header.size(), 2) + header + elements;
}

static sample decoded(const std::string& file) {
  return decode_npz()(sample("a.npz").with_data(buffer_of(file)));
}

// Every alignment of the elements in the file.
TEST(Npz, StoredArraysOfAnyByteOrderAreDecodedWhereverTheyAre) {
  std::string elements(200'000, '\0');
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<char>(i * 7 % 251);
  for (int shift = 0; shift < 4; ++shift) {
    auto text = std::string(static_cast<std::size_t>(shift), 't');
    auto made = decoded(zip_of({{"t", text},
                                {"x.npy", numbers_of("<", elements)},
                                {"y.npy", numbers_of(">", elements)},
                                {"z.npy", numbers_of("<", elements), true}}));
    EXPECT_EQ(made.field("t").bytes().text(), text);
    auto* x = made.field("x").tensor().data<std::int32_t>();
    auto* y = made.field("y").tensor().data<std::int32_t>();
    auto* z = made.field("z").tensor().data<std::int32_t>();
    for (std::size_t i = 0; i < elements.size() / 4; ++i) {
      std::uint32_t expected = 0;
      std::memcpy(&expected, elements.data() + 4 * i, 4);
      ASSERT_EQ(static_cast<std::uint32_t>(x[i]), expected);
      ASSERT_EQ(static_cast<std::uint32_t>(y[i]), __builtin_bswap32(expected));
      ASSERT_EQ(static_cast<std::uint32_t>(z[i]), expected);
    }
  }
}

TEST(Npz, ADamagedArrayIsAWrongChecksumWhereverTheDamageIs) {
  auto file = zip_of({{"x.npy", numbers_of("<", std::string(40'000, 'x'))}});
  auto begin = file.find("NUMPY");
  for (auto at : {begin, begin + 20, begin + 1000, begin + 40'000}) {
    auto damaged = file;
    damaged[at] ^= 1;
    EXPECT_THAT([&] { decoded(damaged); },
                ThrowsMessage<error>("read a.npz/x.npy: its CRC-32 is wrong"));
  }
}

TEST(Npz, DecodingBoundsItsMemoryAndSaysHowMuchItTakes) {
  auto array = npy_of(std::string(1000, 'x'));
  auto file = buffer_of(zip_of({{"x.npy", array, true}, {"y.npy", array}}));
  auto from = sample("a.npz").with_data(file);
  EXPECT_EQ(decode_npz().memory_needed(from), 2 * array.size());
  EXPECT_THAT([&] { decode_npz({.max_bytes = 10})(from); },
              ThrowsMessage<error>(HasSubstr("more than max_bytes")));
}

class NpzFile : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, NpzFile,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(NpzFile, SmallAndLargeFilesAreRead) {
  temp_dir dir;
  runtime runtime(options());
  for (std::size_t bytes : {10u, 1'000'000u}) {
    std::string elements(bytes, 'x');
    auto path = dir.write("a.npz",
                          zip_of({{"x.npy", npy_of(elements)}, {"y.npy", npy_of(elements), true}}));
    EXPECT_TRUE(describe(sync_wait(runtime, read_npz(path))) ==
                described("x", elements) + described("y", elements));
  }
  EXPECT_THAT([&] { sync_wait(runtime, read_npz(dir.write("bad", "?"))); },
              ThrowsMessage<error>(HasSubstr(dir / "bad")));
}

TEST_P(NpzFile, APipelineDecodesWithinItsMemory) {
  temp_dir dir;
  auto small = options();
  small.memory_bytes = 8 << 20;
  runtime runtime(small);
  std::vector<sample> paths;
  for (int i = 0; i < 50; ++i) {
    std::string elements(300'000, static_cast<char>('0' + i));
    auto file = zip_of({{"x.npy", npy_of(elements), true}, {"y.npy", npy_of(elements)}});
    paths.emplace_back(dir.write(std::to_string(i), file));
  }
  int count = 0;
  auto decoded = runtime.run(from(paths) | map(read) | map(decode_npz(), {.concurrency = 4}));
  for (auto& each : decoded) {
    EXPECT_EQ(each.field("x").tensor().data<std::uint8_t>()[299'999], '0' + count);
    EXPECT_EQ(each.field("y").tensor().data<std::uint8_t>()[299'999], '0' + count);
    ++count;
  }
  EXPECT_EQ(count, 50);
}

static task<sample> read_arrays(sample from) {
  auto fields = co_await read_npz(from.key());
  co_return std::move(from).with_fields(std::move(fields));
}

TEST_P(NpzFile, AStageOfTasksReadsLargeArrays) {
  temp_dir dir;
  runtime runtime(options());
  std::string elements(1'000'000, 'x');
  auto path = dir.write("a.npz", zip_of({{"x.npy", npy_of(elements), true}}));
  int count = 0;
  for (auto& each : runtime.run(from(std::vector<sample>(20, sample(path))) | map(read_arrays))) {
    EXPECT_EQ(each.field("x").tensor().spec().bytes(), elements.size());
    ++count;
  }
  EXPECT_EQ(count, 20);
}

TEST(Npz, ReadsAllFilesThatNumPyWrites) {
  if (!have_python("numpy")) GTEST_SKIP() << "NumPy is not installed";
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (auto& file : make_files("npz", 700, seed))
    ASSERT_EQ(describe(read_all(file.content)), file.described);
}

}  // namespace lade::io::npz_test
