#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include "../../examples/train_libtorch/lade_torch.hpp"

#include <torch/torch.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

using lade_torch::from_torch;
using lade_torch::to_torch;
using testing::HasSubstr;
using testing::ThrowsMessage;

// The types that every libtorch has.
static constexpr std::array shared_types{lade::element_type::boolean, lade::element_type::u8,
                                         lade::element_type::i8,      lade::element_type::i16,
                                         lade::element_type::i32,     lade::element_type::i64,
                                         lade::element_type::f16,     lade::element_type::bf16,
                                         lade::element_type::f32,     lade::element_type::f64};

// A buffer, and whether somebody still has a share in it.
static std::pair<lade::buffer, std::weak_ptr<const void>> watched_buffer(std::size_t bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  lade::buffer shared(owner, *owner);
  return {std::move(shared), owner};
}

TEST(ToTorch, SharesTheMemoryOfEveryType) {
  for (auto type : shared_types) {
    const lade::tensor ours(type, {2, 3});
    std::memset(ours.bytes(), 0, ours.spec().bytes());
    auto theirs = to_torch(ours);
    EXPECT_EQ(theirs.data_ptr(), ours.bytes()) << lade::name(type);
    EXPECT_EQ(theirs.element_size(), lade::element_bytes(type));
    EXPECT_EQ(lade_torch::element_type(theirs.scalar_type()), type);
    EXPECT_EQ(theirs.sizes(), (std::vector<std::int64_t>{2, 3}));
    theirs.fill_(1);
    EXPECT_TRUE(
        std::ranges::any_of(ours.memory().bytes(), [](std::byte b) { return b != std::byte{}; }));
  }
}

TEST(ToTorch, ReadsHalfPrecisionAsItsValues) {
  const lade::tensor half(lade::element_type::f16, {1});
  const lade::tensor brain(lade::element_type::bf16, {1});
  half.data<std::uint16_t>()[0] = 0x3e00;   // 1.5 of binary16
  brain.data<std::uint16_t>()[0] = 0x3fc0;  // 1.5, the upper half of binary32
  EXPECT_EQ(to_torch(half).item<float>(), 1.5F);
  EXPECT_EQ(to_torch(brain).item<float>(), 1.5F);
}

TEST(ToTorch, KeepsTheMemoryUntilTheLastViewIsDestroyed) {
  auto [memory, watch] = watched_buffer(24);
  auto theirs = to_torch(lade::tensor({lade::element_type::f32, {6}}, std::move(memory)));
  auto view = theirs.slice(0, 2, 4);
  theirs = torch::Tensor();
  EXPECT_FALSE(watch.expired());
  view = torch::Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(ToTorch, HasTheStridesOfAPart) {
  const lade::tensor whole(lade::element_type::i32, {4, 5});
  for (int i = 0; i < 20; ++i) whole.data<std::int32_t>()[i] = i;
  auto column = lade::tensor({lade::element_type::i32, {4}}, {5}, whole.memory(),
                             whole.bytes() + 2 * sizeof(std::int32_t));
  EXPECT_TRUE(to_torch(column).equal(torch::tensor({2, 7, 12, 17}, torch::kInt32)));
  EXPECT_EQ(to_torch(whole[1]).data_ptr(), whole[1].bytes());
}

TEST(ToTorch, HasNoElementsAndNoDimensionsWhereTheTensorHasNone) {
  EXPECT_EQ(to_torch(lade::tensor(lade::element_type::f32, {0, 3})).numel(), 0);
  const lade::tensor scalar(lade::element_type::i64, {});
  scalar.data<std::int64_t>()[0] = 7;
  EXPECT_EQ(to_torch(scalar).dim(), 0);
  EXPECT_EQ(to_torch(scalar).item<std::int64_t>(), 7);
}

TEST(ToTorch, RefusesNegativeStrides) {
  const lade::tensor forward(lade::element_type::u8, {3});
  const lade::tensor backward({lade::element_type::u8, {3}}, {-1}, forward.memory(),
                              forward.bytes() + 2);
  EXPECT_THAT([&] { to_torch(backward); }, ThrowsMessage<lade::error>(HasSubstr("strides [-1]")));
}

TEST(FromTorch, SharesTheMemoryOfEveryType) {
  for (auto type : shared_types) {
    auto theirs = torch::ones({2, 3}, lade_torch::scalar_type(type));
    auto ours = from_torch(theirs);
    EXPECT_EQ(ours.type(), type);
    EXPECT_EQ(ours.shape(), (lade::dimensions{2, 3}));
    EXPECT_EQ(ours.bytes(), theirs.data_ptr());
    EXPECT_EQ(ours.where(), lade::device());
    std::memset(ours.bytes(), 0, ours.spec().bytes());
    EXPECT_FALSE(theirs.any().item<bool>());
  }
}

TEST(FromTorch, KeepsTheMemory) {
  auto [memory, watch] = watched_buffer(8);
  auto ours = from_torch(to_torch(lade::tensor({lade::element_type::i64, {1}}, std::move(memory))));
  EXPECT_FALSE(watch.expired());
  ours = {};
  EXPECT_TRUE(watch.expired());
}

TEST(FromTorch, HasTheStridesOfAView) {
  auto theirs = torch::arange(12, torch::kInt32).view({3, 4});
  auto ours = from_torch(theirs.transpose(0, 1).slice(0, 1, 3));
  EXPECT_EQ(ours.shape(), (lade::dimensions{2, 3}));
  EXPECT_EQ(ours.strides(), (lade::dimensions{1, 4}));
  EXPECT_EQ(ours[1][2].data<std::int32_t>()[0], 10);
  auto repeated = from_torch(torch::ones({1}).expand({5}));
  EXPECT_EQ(repeated.strides(), lade::dimensions{0});
  EXPECT_EQ(repeated.memory().size(), sizeof(float));
  EXPECT_EQ(from_torch(torch::empty({0, 2})).spec().elements(), 0U);
}

TEST(FromTorch, TakesTheValuesOfATensorWithAGradient) {
  auto weights = torch::ones({2}, torch::requires_grad());
  EXPECT_EQ(from_torch(weights).bytes(), weights.data_ptr());
}

TEST(FromTorch, RefusesWhatLadeDoesNotHave) {
  auto complex = torch::ones({1}, torch::kComplexFloat);
  auto sparse = torch::ones({2, 2}).to_sparse();
  auto deep = torch::ones({1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_THAT([] { from_torch(torch::Tensor()); },
              ThrowsMessage<lade::error>(HasSubstr("undefined")));
  EXPECT_THAT([&] { from_torch(complex); }, ThrowsMessage<lade::error>(HasSubstr("ComplexFloat")));
  EXPECT_THAT([&] { from_torch(sparse); }, ThrowsMessage<lade::error>(HasSubstr("sparse")));
  EXPECT_THAT([&] { from_torch(deep); }, ThrowsMessage<lade::error>(HasSubstr("9 dimensions")));
  EXPECT_THAT([&] { from_torch(torch::_neg_view(torch::ones({1}))); },
              ThrowsMessage<lade::error>(HasSubstr("lazily")));
}

TEST(ElementTypes, OfTorchAreThoseOfLadeWhereBothHaveThem) {
  for (std::size_t i = 0; i < lade::element_types; ++i) {
    const auto type = static_cast<lade::element_type>(i);
    if (std::ranges::find(shared_types, type) != shared_types.end()) {
      EXPECT_EQ(lade_torch::element_type(lade_torch::scalar_type(type)), type);
      continue;
    }
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
    EXPECT_EQ(lade_torch::element_type(lade_torch::scalar_type(type)), type);
#else
    EXPECT_THROW(lade_torch::scalar_type(type), lade::error);
#endif
  }
}
