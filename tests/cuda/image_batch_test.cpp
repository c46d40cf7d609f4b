#include <lade/cuda/image_batch.hpp>
#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace lade::cuda::image_batch_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Says that memory of the CPU is a GPU's, which nothing here reads.
static tensor on_gpu(const tensor_spec& spec,
                     const lade::device& where = {lade::device::kind::cuda, 0}) {
  const auto memory = std::make_shared<std::vector<std::byte>>(spec.bytes() + 4);
  return tensor(spec, buffer(memory, std::span(*memory), where));
}

TEST(ImageBatch, IsThatOfATensor) {
  const auto planes = on_gpu({element_type::f16, {2, 3, 4, 5}});
  const auto batch = batch_in(planes, pixel_layout::chw);
  EXPECT_EQ(batch.data, planes.bytes());
  EXPECT_EQ(batch.type, element_type::f16);
  EXPECT_EQ(batch.layout, pixel_layout::chw);
  EXPECT_EQ(batch.width, 5);
  EXPECT_EQ(batch.height, 4);
  EXPECT_EQ(batch.channels, 3);
  EXPECT_EQ(batch.images, 2);
  EXPECT_EQ(batch.gpu, 0);
}

TEST(ImageBatch, KnowsTheDeviceOfMemoryThatBelongsToOne) {
  const tensor_spec spec{element_type::u8, {4, 4, 5, 3}};
  EXPECT_EQ(batch_in(on_gpu(spec, {lade::device::kind::cuda, 3}), pixel_layout::hwc).gpu, 3);
  for (auto kind : {lade::device::kind::cuda_managed, lade::device::kind::cuda_host})
    EXPECT_EQ(batch_in(on_gpu(spec, {kind, 0}), pixel_layout::hwc).gpu, -1);
}

TEST(ImageBatch, OfPixelsHasItsChannelsLast) {
  const auto batch = batch_in(on_gpu({element_type::u8, {2, 4, 5, 1}}), pixel_layout::hwc);
  EXPECT_EQ(batch.width, 5);
  EXPECT_EQ(batch.height, 4);
  EXPECT_EQ(batch.channels, 1);
}

TEST(ImageBatch, OfATensorThatCannotBeIsRefused) {
  const auto refuses = [](const tensor& images, const char* why) {
    EXPECT_THAT([&] { batch_in(images, pixel_layout::hwc); }, ThrowsMessage<error>(HasSubstr(why)));
  };
  refuses(on_gpu({element_type::u8, {4, 5, 3}}), "rank 4");
  refuses(on_gpu({element_type::u8, {1, 4, 40000, 3}}), "1 to 32768");
  refuses(on_gpu({element_type::u8, {1, 0, 5, 3}}), "1 to 32768");
  refuses(tensor(element_type::u8, {1, 4, 5, 3}), "not a device's");
  const auto whole = on_gpu({element_type::u8, {2, 4, 5, 3}});
  refuses(tensor({element_type::u8, {1, 4, 5, 2}}, {60, 15, 3, 1}, whole.memory(), whole.bytes()),
          "not contiguous");
}

}  // namespace lade::cuda::image_batch_test
