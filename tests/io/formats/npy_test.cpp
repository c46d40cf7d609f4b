#include "../../support/counted_store.hpp"
#include "../../support/reactors.hpp"
#include "../../support/seed.hpp"
#include "../../support/temp_dir.hpp"
#include "oracle.hpp"
#include "tar_bytes.hpp"

#include <lade/error.hpp>
#include <lade/io/formats/npy.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/io/store.hpp>
#include <lade/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace lade::io::npy_test {

using namespace lade::test;
using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A file of version 1 whose elements begin at a multiple of 64 bytes.
static std::string npy_of(const std::string& dictionary, const std::string& elements) {
  std::string header = dictionary + std::string((64 - (dictionary.size() + 11) % 64) % 64, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\0", 8);
  file += static_cast<char>(header.size() % 256);
  file += static_cast<char>(header.size() / 256);
  return file + header + elements;
}

static std::string dictionary_of(const std::string& type, const std::string& shape,
                                 const std::string& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

static tensor parse(const std::string& file) { return parse_npy(buffer_of(file), "x.npy"); }

TEST(Npy, AnAlignedArrayIsAViewOfTheFile) {
  auto file = buffer_of(npy_of(dictionary_of("<i4", "(2, 1)"), std::string("\1\0\0\0\2\0\0\0", 8)));
  auto array = parse_npy(file, "x.npy");
  EXPECT_EQ(array.type(), element_type::i32);
  EXPECT_EQ(array.shape(), (dimensions{2, 1}));
  EXPECT_EQ(array.data<std::int32_t>()[1], 2);
  EXPECT_EQ(array.bytes(), file.data() + file.size() - 8);
}

TEST(Npy, AnArrayThatIsNotAlignedIsCopied) {
  auto file = buffer_of("?" + npy_of(dictionary_of("<i2", "(1,)"), std::string("\5\0", 2)));
  auto array = parse_npy(file.slice(1, file.size() - 1), "x.npy");
  EXPECT_EQ(*array.data<std::int16_t>(), 5);
}

TEST(Npy, BigEndianIsConverted) {
  auto array = parse(npy_of(dictionary_of(">u4", "(2,)"), std::string("\0\0\0\1\1\2\3\4", 8)));
  EXPECT_EQ(array.data<std::uint32_t>()[0], 1u);
  EXPECT_EQ(array.data<std::uint32_t>()[1], 0x01020304u);
}

TEST(Npy, FortranOrderIsStrides) {
  auto array = parse(npy_of(dictionary_of("|u1", "(2, 3)", "True"), "abcdef"));
  EXPECT_EQ(array.strides(), (dimensions{1, 2}));
  EXPECT_EQ(array[1].data<std::uint8_t>()[2 * array.strides()[1]], 'f');
}

TEST(Npy, AScalarHasNoDimensions) {
  auto array = parse(npy_of(dictionary_of("|i1", "()"), "\7"));
  EXPECT_EQ(array.rank(), 0u);
  EXPECT_EQ(*array.data<std::int8_t>(), 7);
}

TEST(Npy, ShapesOfPython2AreRead) {
  EXPECT_EQ(parse(npy_of(dictionary_of("|u1", "(1L, 2L)"), "ab")).shape(), (dimensions{1, 2}));
}

TEST(Npy, ComplexNumbersAreUnsupportedWithWhatToDo) {
  for (auto [type, parts] : {std::pair("<c8", "<f4"), std::pair("<c16", "<f8"),
                             std::pair(">c16", ">f8"), std::pair("=c8", "=f4")}) {
    auto file = npy_of(dictionary_of(type, "(0,)"), "");
    EXPECT_THAT([&] { parse(file); },
                ThrowsMessage<error>("read array x.npy: elements of type '" + std::string(type) +
                                     "' are not supported; save the view of it of type '" + parts +
                                     "', where real and imaginary parts alternate"));
  }
}

TEST(Npy, OtherElementsAreUnsupported) {
  for (std::string type :
       {"<c32", "c8", "", "|c8", "|S3", "<U2", "|O", "<M8[ns]", "<m8", "<f16", "|V2", "<i3"}) {
    auto file = npy_of(dictionary_of(type, "(0,)"), "");
    EXPECT_THAT([&] { parse(file); }, ThrowsMessage<error>("read array x.npy: elements of type '" +
                                                           type + "' are not supported"));
  }
  auto records = npy_of("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (0,)}", "");
  EXPECT_THAT([&] { parse(records); }, ThrowsMessage<error>(HasSubstr("records")));
}

TEST(Npy, AMalformedHeaderIsRefused) {
  auto good = dictionary_of("|u1", "(1,)");
  EXPECT_NO_THROW(parse(npy_of(good, "a")));
  auto refusal = [](const std::string& file, const std::string& why) {
    EXPECT_THAT([&] { parse(file); },
                ThrowsMessage<error>(AllOf(HasSubstr("read array x.npy: "), HasSubstr(why))));
  };
  refusal("", "does not begin");
  refusal("PK\3\4 and more", "does not begin");
  refusal(std::string("\x93NUMPY\4\0..", 10), "version 4.0");
  refusal(std::string("\x93NUMPY\2\0\1\0", 10), "ends in its header");
  refusal(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12),
          "claims 4294967295 bytes, and 0 follow");
  refusal(npy_of("", "a"), "expected '{'");
  refusal(npy_of("{}", "a"), "lacks");
  refusal(npy_of(good + "}", "a"), "after the dictionary");
  refusal(npy_of("{'a': 1}", "a"), "unknown key 'a'");
  refusal(npy_of("{'shape': (1,), 'shape': (1,)}", "a"), "twice");
  refusal(npy_of("{'shape", "a"), "string");
  refusal(npy_of(dictionary_of("|u1", "(1)"), "a"), "no tuple");
  refusal(npy_of(dictionary_of("|u1", "(-1,)"), "a"), "whole number");
  refusal(npy_of(dictionary_of("|u1", "(99999999999999999999,)"), "a"), "whole number");
  refusal(npy_of(dictionary_of("|u1", "(1,)", "Maybe"), "a"), "True nor False");
  refusal(npy_of(dictionary_of("|u4", "(1,)"), "abcd"), "byte order");
  refusal(npy_of(dictionary_of("|u1", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "a"), "8 dimensions");
}

TEST(Npy, AnArrayThatIsNotAsLongAsItsShapeIsRefused) {
  auto refusal = [](const std::string& shape, const std::string& why) {
    auto file = npy_of(dictionary_of("<f8", shape), std::string(15, '\0'));
    EXPECT_THAT([&] { parse(file); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refusal("(2,)", "f64[2] needs 16 bytes behind its header, and there are 15");
  refusal("(1,)", "needs 8 bytes");
  refusal("(0,)", "needs 0 bytes");
  refusal("(2305843009213693952, 2)", "needs 18446744073709551615 bytes");
  refusal("(9223372036854775807, 9223372036854775807, 0)", "needs 18446744073709551615 bytes");
}

TEST(Npy, ABoolIsZeroOrOne) {
  auto shape = dictionary_of("|b1", "(2,)");
  EXPECT_TRUE(parse(npy_of(shape, std::string("\0\1", 2))).data<bool>()[1]);
  EXPECT_THAT([&] { parse(npy_of(shape, "\1\2")); },
              ThrowsMessage<error>(HasSubstr("a bool is neither 0 nor 1")));
}

TEST(Npy, ASampleGetsAFieldForItsData) {
  auto from = sample("x.npy", 3).with_data(buffer_of(npy_of(dictionary_of("|u1", "(1,)"), "a")));
  auto decoded = decode_npy("vector")(from);
  EXPECT_EQ(decoded.label(), 3);
  EXPECT_FALSE(decoded.has_data());
  EXPECT_EQ(decoded.field("vector").tensor().shape(), dimensions{1});
  EXPECT_THAT([] { decode_npy()(sample("empty.npy")); },
              ThrowsMessage<error>(HasSubstr("empty.npy")));
}

TEST(Npy, BehindAUrlIsNamedWithoutSecrets) {
  const std::string url = "npy://u:secret@h/a?sig=secret";
  auto remote = std::make_shared<counted_store>();
  remote->put(url, "nonsense");
  mount("npy://", remote);
  runtime runtime;
  EXPECT_THAT([&] { sync_wait(runtime, read_npy(url)); },
              ThrowsMessage<error>(HasSubstr("npy://h/a?sig=...: ")));
  unmount("npy://");
}

class NpyFile : public ReactorTest {};
INSTANTIATE_TEST_SUITE_P(Both, NpyFile,
                         testing::Values(reactor_kind::io_uring, reactor_kind::fallback),
                         reactor_name);

TEST_P(NpyFile, IsRead) {
  temp_dir dir;
  runtime runtime(options());
  auto path = dir.write("x.npy", npy_of(dictionary_of(">u2", "(1,)"), "ab"));
  EXPECT_EQ(*sync_wait(runtime, read_npy(path)).data<std::uint16_t>(), 'a' * 256 + 'b');
  EXPECT_THAT([&] { sync_wait(runtime, read_npy(dir.write("bad", "?"))); },
              ThrowsMessage<error>(HasSubstr(dir / "bad")));
}

static std::string with_shape(const std::string& shape) {
  return npy_of(dictionary_of(">f8", shape), std::string(15, '\0'));
}

TEST_P(NpyFile, ThatClaimsMoreThanItHasIsRefusedByNameInLittleMemory) {
  temp_dir dir;
  runtime runtime(options());
  for (auto& [shape, bytes] : {std::pair("(1152921504606846976,)", "9223372036854775808"),
                               std::pair("(3, 4294967296, 4294967296)", "18446744073709551615")}) {
    auto path = dir.write("x.npy", with_shape(shape));
    EXPECT_THAT([&] { sync_wait(runtime, read_npy(path)); },
                ThrowsMessage<error>(AllOf(HasSubstr("read array " + path + ": an array f64["),
                                           HasSubstr(std::string(bytes) + " bytes behind"))));
  }
  EXPECT_LE(runtime.memory().stats().peak_bytes, 64u << 10);
}

static task<tensor> first_array(async_generator<tar_member> members) {
  auto* member = co_await members.next();
  co_return parse_npy(member->content(), "a.tar/" + member->name());
}

TEST(Npy, AMemberOfAnArchiveThatClaimsMoreThanItHasIsRefusedByName) {
  auto archive = tar_file("x.npy", with_shape("(1152921504606846976,)")) + tar_end();
  EXPECT_THAT(
      [&] { sync_wait(first_array(tar_members(chunks_of(archive, 100), "a.tar"))); },
      ThrowsMessage<error>("read array a.tar/x.npy: an array f64[1152921504606846976] needs "
                           "9223372036854775808 bytes behind its header, and there are "
                           "15"));
}

TEST(Npy, ReadsAllArraysThatNumPyWrites) {
  if (!have_python("numpy")) GTEST_SKIP() << "NumPy is not installed";
  auto seed = new_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (auto& file : make_files("npy", 1500, seed))
    ASSERT_EQ(describe("array", parse_npy(file.content, "x.npy")), file.described);
}

}  // namespace lade::io::npy_test
