#include <lade/cuda/copy_bytes.hpp>
#include <lade/error.hpp>

#include "kernel_fixture.hpp"

#include <algorithm>
#include <vector>

namespace lade::cuda {

class CopyBytes : public kernel_test {};

TEST_P(CopyBytes, AreTheSameAtAnyAddress) {
  for (int round = 0; round < 200; ++round) {
    const auto bytes = any_bytes(std::size_t(any_size(20000)));
    const auto from = memory_of(bytes, std::size_t(below(2) * below(20)), maybe());
    const auto to = memory_of(any_bytes(bytes.size()), std::size_t(below(2) * below(20)), maybe());
    copy_bytes(from->data(), to->data(), bytes.size(), nullptr);
    finish();
    ASSERT_EQ(to->read(), bytes);
  }
}

TEST_P(CopyBytes, OutsideOfTheRangeStay) {
  const auto from = memory_of(any_bytes(1000));
  for (const std::size_t count : {1U, 15U, 16U, 17U, 999U}) {
    const auto before = any_bytes(1000);
    const auto to = memory_of(before);
    copy_bytes(from->data(), to->data(), count, nullptr);
    finish();
    const auto after = to->read();
    EXPECT_TRUE(std::equal(before.begin() + static_cast<std::ptrdiff_t>(count), before.end(),
                           after.begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

TEST(CopyBytesArguments, ThatCannotBeAreRefused) {
  const emulated_grids grids(1);
  unsigned char bytes[2];
  EXPECT_THROW(copy_bytes(nullptr, bytes, 1, nullptr), error);
  EXPECT_THROW(copy_bytes(bytes, nullptr, 1, nullptr), error);
  EXPECT_THROW(copy_bytes(bytes, bytes + 1, 0, nullptr), error);
  EXPECT_EQ(grids.launches, 0);
}

LADE_KERNEL_SUITE(CopyBytes);

}  // namespace lade::cuda
