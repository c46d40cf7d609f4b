#include <lade/cuda/copy_bytes.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/error.hpp>

#include "fake_driver.hpp"
#include "kernel_fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

namespace lade::cuda::copy_bytes_test {

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

TEST(CopyBytesOnAStream, AreCopiedWithItsDeviceAsTheCurrentOne) {
  const fake_driver driver({.devices = 2});
  emulated_grids grids(1);
  int current = 0;
  grids.before_launch = [&] { current = device::current().index(); };
  const stream on(device(1));
  const unsigned char from = 7;
  unsigned char to = 0;
  copy_bytes(&from, &to, 1, on);
  EXPECT_EQ(to, 7);
  EXPECT_EQ(current, 1);
  EXPECT_EQ(grids.last_stream, on.handle());
  EXPECT_EQ(device::current().index(), 0);
}

TEST(CopyBytesOnAStream, AFailedLaunchIsAnErrorThatNamesTheOperation) {
  static constexpr kernel_launches failing{
      .copy = [](const byte_copy&, CUstream_st*) -> int { return cudaErrorInvalidConfiguration; }};
  replace_launches(&failing);
  const unsigned char from = 7;
  unsigned char to = 0;
  EXPECT_THAT([&] { copy_bytes(&from, &to, 1, nullptr); },
              testing::ThrowsMessage<error>(
                  testing::StartsWith("copy bytes on the device: cudaErrorInvalidConfiguration")));
  replace_launches(nullptr);
}

TEST(CopyBytesOnAStream, WithoutAGpuThrowCudasError) {
  if (has_gpu()) return;
  const unsigned char from = 7;
  unsigned char to = 0;
  EXPECT_THAT([&] { copy_bytes(&from, &to, 1, nullptr); },
              testing::ThrowsMessage<error>(testing::HasSubstr("cudaError")));
}

LADE_KERNEL_SUITE(CopyBytes);

}  // namespace lade::cuda::copy_bytes_test
