// Tensors of GPUs through DLPack: what a framework does with them, on its stream.

#include <lade/cuda/memory.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/dlpack.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <dlpack/dlpack.h>

#include "batches.hpp"
#include "worlds.hpp"

namespace lade::cuda::device_dlpack_test {

class DeviceDlpack : public InBothWorlds {};
LADE_IN_BOTH_WORLDS(DeviceDlpack);

// The framework's work is queued on its stream, and it releases the tensor before the work has run.
// The memory must not be used for another batch before.
TEST_P(DeviceDlpack, SharesTheMemoryOfABatchUntilTheFrameworksStreamHasPassed) {
  world where(GetParam());
  runtime runtime({.threads = 2});
  stream framework(device(0));
  auto release = where.block(framework);
  std::vector<host_values<std::int32_t>> seen(2);
  std::size_t next = 0;
  for (auto& batch : runtime.run(numbered_batches(4) | to_device({.buffers = 2}))) {
    batch.wait_on(framework);
    auto* managed = to_dlpack(batch.tensor());
    EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDA);
    EXPECT_EQ(managed->dl_tensor.device.device_id, 0);
    auto taken = from_dlpack(managed);  // as the framework does
    queue_copy(taken, seen[next++], framework);
  }
  ASSERT_EQ(next, 2u);
  release();
  framework.synchronize();
  EXPECT_TRUE(is_numbered(seen[0], 0));
  EXPECT_TRUE(is_numbered(seen[1], 2));
}

TEST_P(DeviceDlpack, TakesPinnedMemoryForPinned) {
  world where(GetParam());
  pinned_memory pinned;
  tensor shared({element_type::f32, {8}}, buffer(32, pinned));
  auto* managed = to_dlpack(shared);
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDAHost);
  EXPECT_EQ(from_dlpack(managed).where(), shared.where());
}

}  // namespace lade::cuda::device_dlpack_test
