#include <lade/dlpack.hpp>
#include <lade/error.hpp>

#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace lade::dlpack_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A consumer as somebody would write it who knows dlpack.h only: copies the elements, in order.
static std::vector<std::uint8_t> read_like_c(const DLTensor* tensor) {
  std::size_t size = (tensor->dtype.bits * tensor->dtype.lanes + 7u) / 8u;
  std::vector<std::uint8_t> out;
  const char* data = static_cast<const char*>(tensor->data) + tensor->byte_offset;
  std::int64_t count = 1;
  for (int i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n;
    std::int64_t place = 0;
    std::int64_t compact = 1;
    for (int i = tensor->ndim - 1; i >= 0; --i) {
      place += rest % tensor->shape[i] * (tensor->strides ? tensor->strides[i] : compact);
      rest /= tensor->shape[i];
      compact *= tensor->shape[i];
    }
    const char* element = data + place * static_cast<std::int64_t>(size);
    out.insert(out.end(), element, element + size);
  }
  return out;
}

static std::vector<std::uint8_t> read_like_lade(const tensor& t) {
  std::vector<std::uint8_t> out;
  if (t.rank() == 0) {
    auto* bytes = reinterpret_cast<const std::uint8_t*>(t.bytes());
    return {bytes, bytes + element_bytes(t.type())};
  }
  for (std::int64_t i = 0; i < t.shape()[0]; ++i) {
    auto part = read_like_lade(t[i]);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

static tensor random_tensor(element_type type, const dimensions& shape) {
  tensor result(type, shape);
  std::mt19937 random(3);
  for (auto& byte : result.memory().bytes()) byte = static_cast<std::byte>(random());
  return result;
}

class DlpackTypes : public testing::TestWithParam<element_type> {};
INSTANTIATE_TEST_SUITE_P(All, DlpackTypes,
                         testing::Values(element_type::boolean, element_type::u8, element_type::i8,
                                         element_type::u16, element_type::i16, element_type::u32,
                                         element_type::i32, element_type::u64, element_type::i64,
                                         element_type::f16, element_type::bf16, element_type::f32,
                                         element_type::f64),
                         [](auto& test) { return std::string(name(test.param)); });

TEST_P(DlpackTypes, AConsumerReadsTheSameValues) {
  auto whole = random_tensor(GetParam(), {4, 5, 6});
  auto last = whole.bytes() + 119 * element_bytes(GetParam());
  tensor turned({GetParam(), {6, 5, 4}}, {1, 6, 30}, whole.memory(), whole.bytes());
  tensor reversed({GetParam(), {4, 5, 6}}, {-30, -6, -1}, whole.memory(), last);
  tensor repeated({GetParam(), {3, 6}}, {0, 1}, whole.memory(), whole.bytes());
  tensor one({GetParam(), {}}, {}, whole.memory(), whole.bytes());
  for (auto& each : {whole, whole.slice(1, 3), whole[2], turned, reversed, repeated, one}) {
    auto* shared = to_dlpack(each);
    EXPECT_EQ(read_like_c(&shared->dl_tensor), read_like_lade(each));
    auto back = from_dlpack(shared);  // and is given back when `back` dies
    EXPECT_EQ(back.spec(), each.spec());
    EXPECT_EQ(read_like_lade(back), read_like_lade(each));
  }
}

TEST(Dlpack, TheExportedTensorKeepsItsMemory) {
  auto* shared = to_dlpack(random_tensor(element_type::u8, {1000}));
  std::memset(shared->dl_tensor.data, 1, 1000);
  shared->deleter(shared);
}

// A tensor of a foreign library: it counts the calls of its deleter.
struct foreign_tensor {
  std::array<float, 12> values{};
  std::array<std::int64_t, 2> shape{3, 4};
  std::array<std::int64_t, 2> strides{4, 1};
  int deleted = 0;
  DLManagedTensor managed{};

  foreign_tensor() {
    std::iota(values.begin(), values.end(), 0.0f);
    managed.dl_tensor = {values.data(), {kDLCPU, 0},    2, {kDLFloat, 32, 1},
                         shape.data(),  strides.data(), 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      ++static_cast<foreign_tensor*>(self->manager_ctx)->deleted;
    };
  }
};

TEST(Dlpack, TheDeleterRunsOnceWhenTheLastShareDies) {
  foreign_tensor foreign;
  {
    auto imported = from_dlpack(&foreign.managed);
    tensor part = imported[1];
    imported = tensor();
    EXPECT_EQ(part.data<float>()[2], 6.0f);
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, ADeleterMayBeMissing) {
  foreign_tensor foreign;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).data<float>()[3], 3.0f);
}

TEST(Dlpack, NoStridesMeansCompact) {
  foreign_tensor foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed)[2].data<float>()[0], 8.0f);
}

TEST(Dlpack, AnOffsetIsInBytes) {
  foreign_tensor foreign;
  foreign.managed.dl_tensor.byte_offset = 8;
  foreign.shape[0] = 2;
  EXPECT_EQ(from_dlpack(&foreign.managed)[1].data<float>()[0], 6.0f);
}

TEST(Dlpack, AnEmptyTensorNeedsNoMemory) {
  foreign_tensor foreign;
  foreign.managed.dl_tensor.data = nullptr;
  foreign.shape[1] = 0;
  EXPECT_EQ(from_dlpack(&foreign.managed).spec().elements(), 0u);
}

template <class Change>
static void expect_refused(const char* why, Change change) {
  foreign_tensor foreign;
  change(foreign, foreign.managed.dl_tensor);
  EXPECT_THAT([&] { from_dlpack(&foreign.managed); }, ThrowsMessage<error>(HasSubstr(why)));
  EXPECT_EQ(foreign.deleted, 0) << why;
}

TEST(Dlpack, UnsupportedTensorsAreRefusedAndStayWithTheCaller) {
  expect_refused("elements of type 5, 64 bits and 1 lanes",
                 [](auto&, DLTensor& t) { t.dtype = {kDLComplex, 64, 1}; });
  expect_refused("4 lanes", [](auto&, DLTensor& t) { t.dtype.lanes = 4; });
  expect_refused("device type 7", [](auto&, DLTensor& t) { t.device.device_type = kDLVulkan; });
  expect_refused("9 dimensions", [](auto&, DLTensor& t) { t.ndim = 9; });
  expect_refused("negative extent", [](auto& f, DLTensor&) { f.shape[0] = -1; });
  expect_refused("strides out of range",
                 [](auto& f, DLTensor&) { f.strides[0] = std::int64_t{1} << 62; });
  expect_refused("not aligned", [](auto&, DLTensor& t) { t.byte_offset = 1; });
}

}  // namespace lade::dlpack_test
