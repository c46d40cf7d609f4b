#include "../../support/counted_store.hpp"
#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "oracle.hpp"
#include "zip_writer.hpp"

#include <lade/error.hpp>
#include <lade/io/formats/safetensors.hpp>
#include <lade/io/store.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

namespace lade::io::safetensors_test {

using namespace lade::test;
using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

static std::string file_of(const std::string& header, const std::string& data) {
  return little(header.size(), 8) + header + data;
}

static std::string entry_of(const std::string& name, const std::string& type,
                            const std::string& shape, int begin, int end) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

static safetensors_file open_text(const std::string& file) {
  return sync_wait(open_safetensors(std::make_shared<memory_reader>(buffer_of(file), "x.st")));
}

static void expect_refusal(const std::string& file, const std::string& why) {
  EXPECT_THAT([&] { parse_safetensors(buffer_of(file), "x.st"); },
              ThrowsMessage<error>(AllOf(HasSubstr("x.st"), HasSubstr(why))));
  EXPECT_THAT([&] { open_text(file); }, ThrowsMessage<error>(HasSubstr(why)));
}

TEST(Safetensors, AlignedTensorsAreViewsOfTheFile) {
  auto header =
      "{" + entry_of("b", "U8", "[]", 8, 9) + "," + entry_of("a", "F32", "[2, 1]", 0, 8) + "}";
  header += std::string((8 - header.size() % 8) % 8, ' ');
  auto file = buffer_of(file_of(header, std::string("\0\0\x80\x3f\0\0\0\x40z", 9)));
  auto fields = parse_safetensors(file, "x.st");
  ASSERT_EQ(fields.size(), 2u);
  auto& a = fields[0].tensor();
  EXPECT_EQ(fields[0].name(), "a");
  EXPECT_EQ(a.shape(), (dimensions{2, 1}));
  EXPECT_EQ(a.data<float>()[1], 2);
  EXPECT_EQ(a.bytes(), file.data() + 8 + header.size());
  EXPECT_EQ(fields[1].tensor().rank(), 0u);
  EXPECT_EQ(*fields[1].tensor().data<std::uint8_t>(), 'z');
}

TEST(Safetensors, TensorsAreReadByName) {
  auto file = open_text(file_of("{\"__metadata__\":{\"format\":\"pt\"}," +
                                    entry_of("a", "I16", "[1]", 1, 3) + "," +
                                    entry_of("b", "BOOL", "[1]", 0, 1) + "}",
                                std::string("\1\2\3", 3)));
  EXPECT_EQ(file.name(), "x.st");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name(), "b");
  EXPECT_EQ(file.find("a")->spec(), (tensor_spec{element_type::i16, {1}}));
  EXPECT_FALSE(file.find("c"));
  ASSERT_EQ(file.metadata().size(), 1u);
  EXPECT_EQ(file.metadata()[0].second, "pt");
  EXPECT_EQ(*sync_wait(file.read("a")).data<std::int16_t>(), 0x0302);
  EXPECT_THAT([&] { sync_wait(file.read("c")); },
              ThrowsMessage<error>("read x.st/c: the file has no such tensor"));
}

TEST(Safetensors, OtherElementsAreUnsupported) {
  for (std::string type : {"F8_E4M3", "F8_E5M2", "F4", "C64", "f32", ""})
    expect_refusal(file_of("{" + entry_of("a", type, "[0]", 0, 0) + "}", ""),
                   "x.st/a: elements of type '" + type + "' are not supported");
}

TEST(Safetensors, AWrongHeaderIsRefused) {
  EXPECT_TRUE(parse_safetensors(buffer_of(file_of("{}", "")), "x.st").empty());
  expect_refusal("", "has only 0 bytes");
  expect_refusal(little(100, 8) + "{}", "claims 100 bytes, and 2 follow");
  expect_refusal(little(std::uint64_t{1} << 60, 8) + "{}",
                 "claims 1152921504606846976 bytes, and 2 follow");
  expect_refusal(little(~std::uint64_t{0}, 8) + "{}",
                 "claims 18446744073709551615 bytes, and 2 follow");
  expect_refusal(file_of("{\"a\":{\"b\":" + std::string(100'000, '['), ""), " levels");
  expect_refusal(file_of("", ""), "does not begin with '{'");
  expect_refusal(file_of(" {}", ""), "does not begin with '{'");
  expect_refusal(file_of("{", ""), "byte 1: expected a string");
  expect_refusal(file_of("{} x", ""), "expected the end");
  expect_refusal(file_of("{\"a\":1}", ""), "expected an object");
  expect_refusal(file_of("{\"a\":{}}", ""), "elements of type ''");
  expect_refusal(file_of("{\"__metadata__\":{\"x\":1}}", ""), "expected a string");
  auto a = entry_of("a", "U8", "[1]", 0, 1);
  expect_refusal(file_of("{" + a + "," + a + "}", "x"), "the name \"a\" twice");
}

TEST(Safetensors, TensorsMustCoverTheDataExactly) {
  auto refusal = [](const std::string& entries, const std::string& why) {
    expect_refusal(file_of("{" + entries + "}", "abcd"), why);
  };
  refusal(entry_of("a", "U8", "[3]", 0, 3), "has");
  refusal(entry_of("a", "U8", "[5]", 0, 5), "end at byte");
  refusal(entry_of("a", "U8", "[3]", 1, 4), "x.st/a: it begins at byte");
  refusal(entry_of("a", "U8", "[3]", 0, 3) + "," + entry_of("b", "U8", "[2]", 2, 4), "x.st/b");
  refusal(entry_of("a", "U8", "[3]", 0, 4), "its shape [3] is not one of 4 bytes");
  refusal(entry_of("a", "U8", "[-1, -4]", 0, 4), "its shape");
  refusal(entry_of("a", "U32", "[9223372036854775807, 2]", 0, 4), "its shape");
  refusal(entry_of("a", "U8", "[1, 1, 1, 1, 1, 1, 1, 1, 4]", 0, 4), "8 dimensions");
  refusal("\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}", "no range");
  refusal("\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0]}", "no range");
  refusal(
      "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[18446744073709551615,"
      "18446744073709551615]}",
      "beyond all files");
}

TEST(Safetensors, ABoolIsZeroOrOne) {
  EXPECT_THAT(
      [] {
        parse_safetensors(buffer_of(file_of("{" + entry_of("a", "BOOL", "[1]", 0, 1) + "}", "\2")),
                          "x");
      },
      ThrowsMessage<error>(HasSubstr("x/a: a bool is neither 0 nor 1")));
}

TEST(Safetensors, ASampleGetsAFieldForEachTensor) {
  auto from = sample("x.st", 7)
                  .with_data(buffer_of(file_of("{" + entry_of("a", "U8", "[1]", 0, 1) + "}", "x")))
                  .with_field(field("id", 5));
  auto decoded = decode_safetensors()(from);
  EXPECT_EQ(decoded.label(), 7);
  EXPECT_FALSE(decoded.has_data());
  EXPECT_EQ(decoded.field("id").integer(), 5);
  EXPECT_EQ(decoded.field("a").tensor().shape(), dimensions{1});
  EXPECT_THAT([] { decode_safetensors()(sample("none.st")); },
              ThrowsMessage<error>(HasSubstr("none.st")));
}

TEST(Safetensors, BehindAUrlIsNamedWithoutSecrets) {
  const std::string url = "safetensors://u:secret@h/a?sig=secret";
  auto remote = std::make_shared<counted_store>();
  remote->put(url, "nonsense");
  mount("safetensors://", remote);
  runtime runtime;
  EXPECT_THAT([&] { sync_wait(runtime, read_safetensors(url)); },
              ThrowsMessage<error>(HasSubstr("safetensors://h/a?sig=...: ")));
  unmount("safetensors://");
}

class SafetensorsFile : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, SafetensorsFile,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(SafetensorsFile, IsReadAtOnceAndByRange) {
  temp_dir dir;
  runtime runtime(options());
  auto header =
      "{" + entry_of("a", "U8", "[1]", 0, 1) + "," + entry_of("b", "U16", "[1]", 1, 3) + "}";
  header += std::string(100'000, ' ');
  auto path = dir.write("x.st", file_of(header, "xyz"));
  auto fields = sync_wait(runtime, read_safetensors(path));
  EXPECT_EQ(*fields[1].tensor().data<std::uint16_t>(), 'z' * 256 + 'y');
  auto file = sync_wait(runtime, open_safetensors(path));
  EXPECT_EQ(*sync_wait(runtime, file.read("b")).data<std::uint16_t>(), 'z' * 256 + 'y');
  EXPECT_THAT([&] { sync_wait(runtime, read_safetensors(dir.write("bad", "?"))); },
              ThrowsMessage<error>(HasSubstr(dir / "bad")));
}

static void expect_as_described(const std::vector<known_file>& files) {
  for (auto& file : files) {
    auto fields = parse_safetensors(file.content, "x.st");
    std::ranges::sort(fields, {}, &field::name);
    ASSERT_EQ(describe(fields), file.described);
  }
}

TEST(Safetensors, ReadsAllFilesOfTheFormat) {
  if (!have_python("numpy")) GTEST_SKIP() << "NumPy is not installed";
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_as_described(make_files("safetensors", 1000, seed));
}

TEST(SafetensorsPackage, WritesFilesThatAreRead) {
  auto python = packages_python();
  if (!python) GTEST_SKIP() << "LADE_PACKAGES_PYTHON is not set";
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  expect_as_described(make_files("safetensors_package", 300, seed, *python));
}

}  // namespace lade::io::safetensors_test
