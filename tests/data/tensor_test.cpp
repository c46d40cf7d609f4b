#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace lade::tensor_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Tensor, PartsShareTheMemory) {
  tensor batch(element_type::i32, {2, 3});
  std::iota(batch.data<std::int32_t>(), batch.data<std::int32_t>() + 6, 0);
  tensor second = batch[1];
  EXPECT_EQ(second.shape(), dimensions({3}));
  EXPECT_EQ(second.data<std::int32_t>()[0], 3);
  EXPECT_EQ(batch.slice(1, 2)[0].bytes(), second.bytes());
}

TEST(Tensor, OutlivesTheTensorItIsPartOf) {
  tensor part = tensor(element_type::u8, {4, 4})[3];
  part.data<std::uint8_t>()[3] = 7;
  EXPECT_EQ(part.data<std::uint8_t>()[3], 7);
}

TEST(Tensor, TooSmallABufferNamesTheShape) {
  EXPECT_THAT([] { tensor({element_type::f32, {2, 3}}, buffer(23)); },
              ThrowsMessage<error>(HasSubstr("f32[2, 3]: the buffer is too small")));
}

TEST(Tensor, StridesMayNotReachOutsideOfTheBuffer) {
  buffer memory(12);
  tensor_spec spec{element_type::u8, {3, 4}};
  EXPECT_NO_THROW(tensor(spec, {-4, 1}, memory, memory.data() + 8));
  EXPECT_THROW(tensor(spec, {-4, 1}, memory, memory.data() + 4), error);
  EXPECT_THROW(tensor(spec, {5, 1}, memory, memory.data()), error);
}

TEST(Tensor, SizesThatOverflowAreRefused) {
  auto huge = std::int64_t{1} << 32;
  EXPECT_THROW((void)(tensor_spec{element_type::u8, {huge, huge}}.bytes()), error);
  EXPECT_THROW((void)(tensor_spec{element_type::f64, {huge, huge / 4}}.bytes()), error);
  EXPECT_THROW((void)(tensor_spec{element_type::u8, {-1}}.bytes()), error);
}

TEST(Tensor, WithoutElementsMayHaveOtherExtentsOfAnySize) {
  constexpr auto huge = std::int64_t{1} << 62;
  tensor none(element_type::u8, {0, huge, 8});
  EXPECT_TRUE(none.contiguous());
  EXPECT_EQ(none.strides()[1], 8);
  EXPECT_TRUE(none.slice(0, 0).contiguous());
}

TEST(Tensor, KnowsWhetherItIsContiguous) {
  tensor image(element_type::u8, {2, 3, 4});
  EXPECT_TRUE(image.contiguous());
  EXPECT_FALSE(tensor(image.spec(), {12, 1, 3}, image.memory(), image.bytes()).contiguous());
}

TEST(Tensor, ElementsAreCopiedInTheOrderOfTheirIndicesWhateverTheStrides) {
  tensor rows(element_type::u16, {2, 3});
  std::iota(rows.data<std::uint16_t>(), rows.data<std::uint16_t>() + 6, std::uint16_t{0});
  tensor columns({element_type::u16, {3, 2}}, {1, 3}, rows.memory(), rows.bytes());
  std::vector<std::uint16_t> copied(6);
  copy_elements(columns, reinterpret_cast<std::byte*>(copied.data()));
  EXPECT_THAT(copied, testing::ElementsAre(0, 3, 1, 4, 2, 5));
  copy_elements(rows, reinterpret_cast<std::byte*>(copied.data()));
  EXPECT_THAT(copied, testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Dimensions, MoreThanEightAreRefused) {
  EXPECT_THROW((void)dimensions({1, 2, 3, 4, 5, 6, 7, 8, 9}), error);
}

TEST(Buffer, SliceKeepsTheBytesAlive) {
  buffer part = buffer(100).slice(10, 20);
  part.data()[19] = std::byte{1};
  EXPECT_EQ(part.size(), 20u);
  EXPECT_THROW(part.slice(19, 2), std::out_of_range);
}

TEST(Tensor, ElementsOfAnotherTypeAreRefused) {
  tensor image(element_type::f32, {2, 3});
  EXPECT_NO_THROW(image.data<const float>());
  EXPECT_THAT([&] { image.data<double>(); },
              testing::ThrowsMessage<error>(
                  "take the elements of tensor f32[2, 3]: they are not of type double"));
}

TEST(Tensor, EachElementTypeHasANameASizeAndATypeThatHoldsIt) {
  EXPECT_EQ(name(element_type::boolean), "bool");
  EXPECT_EQ(name(element_type::f64), "f64");
  EXPECT_EQ(element_bytes(element_type::u32), sizeof(std::uint32_t));
  EXPECT_EQ(element_bytes(type_of<bool>()), 1u);
  EXPECT_EQ(type_of<std::int8_t>(), element_type::i8);
  EXPECT_EQ(type_of<std::uint16_t>(), element_type::u16);
  EXPECT_EQ(type_of<std::uint64_t>(), element_type::u64);
  EXPECT_EQ(type_of<double>(), element_type::f64);
  static_assert(!has_element_type<long double>);
  EXPECT_NO_THROW((void)tensor(element_type::bf16, {1}).data<std::uint16_t>());
  EXPECT_THROW((void)tensor(element_type::boolean, {1}).data<std::uint8_t>(), error);
}

}  // namespace lade::tensor_test
