// Which share of the memory's speed kernels reach, beside a kernel that only copies. Prints a line
// of JSON per kernel: medians over rounds in which the kernels take turns. Needs a GPU: without one
// it says so, and exits with 77.

#include <lade/cuda/change_layout.hpp>
#include <lade/cuda/copy_bytes.hpp>
#include <lade/cuda/write_images.hpp>
#include <lade/cuda/write_pictures.hpp>

#include "bench.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace lade::cuda {

static void require_cuda(cudaError_t result) {
  if (result != cudaSuccess) bench::fail(cudaGetErrorString(result));
}

// Memory of the device for as long as it lives.
class bench_memory {
 public:
  explicit bench_memory(std::size_t bytes) {
    require_cuda(cudaMalloc(&data_, bytes));
    require_cuda(cudaMemset(data_, 0x5c, bytes));
  }
  bench_memory(const bench_memory&) = delete;
  bench_memory& operator=(const bench_memory&) = delete;
  ~bench_memory() { cudaFree(data_); }

  unsigned char* data() const { return static_cast<unsigned char*>(data_); }

 private:
  void* data_ = nullptr;
};

// A kernel, and the bytes that it must read and write.
struct contestant {
  std::string name;
  std::size_t bytes = 0;
  std::function<void()> launch;
  std::vector<double> bytes_per_second{};
};

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

// Seconds of a launch, over `repeats` of them.
static double measure(const contestant& kernel, int repeats) {
  cudaEvent_t begin, end;
  require_cuda(cudaEventCreate(&begin));
  require_cuda(cudaEventCreate(&end));
  kernel.launch();
  require_cuda(cudaEventRecord(begin));
  for (int i = 0; i < repeats; ++i) kernel.launch();
  require_cuda(cudaEventRecord(end));
  require_cuda(cudaEventSynchronize(end));
  float milliseconds = 0;
  require_cuda(cudaEventElapsedTime(&milliseconds, begin, end));
  require_cuda(cudaEventDestroy(begin));
  require_cuda(cudaEventDestroy(end));
  return milliseconds / 1e3 / repeats;
}

static constexpr int side = 224;
static constexpr int shown_width = 1920;
static constexpr int shown_height = 1080;

static image_batch batch_of(element_type type, void* data) {
  return {.data = data,
          .type = type,
          .width = side,
          .height = side,
          .mean = {0.485F, 0.456F, 0.406F},
          .stddev = {0.229F, 0.224F, 0.225F}};
}

// Images of a size, one behind the other.
static std::vector<image_source> images_in(const bench_memory& memory, std::size_t count, int width,
                                           int height) {
  std::vector<image_source> images(count);
  for (std::size_t i = 0; i < count; ++i)
    images[i] = {.data = memory.data() + i * std::size_t(width) * std::size_t(height) * 3,
                 .width = width,
                 .height = height};
  return images;
}

static std::vector<yuv_picture> pictures_in(const bench_memory& memory, std::size_t count) {
  constexpr std::size_t luma = std::size_t(shown_width) * shown_height;
  std::vector<yuv_picture> pictures(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto* first = memory.data() + i * luma * 3 / 2;
    pictures[i] = {.planes = {{{first, shown_width}, {first + luma, shown_width}, {}}},
                   .width = shown_width,
                   .height = shown_height};
  }
  return pictures;
}

class kernel_bench {
 public:
  explicit kernel_bench(std::size_t images)
      : count_(images),
        pixels_(images * side * side),
        in_(pixels_ * 3 * sizeof(float)),
        out_(pixels_ * 3 * sizeof(float)) {}

  void run(std::size_t rounds) {
    add_copy();
    add_conversions();
    add_crop();
    add_resize();
    add_pictures();
    add_layout();
    for (std::size_t r = 0; r < rounds; ++r)
      for (auto& kernel : kernels_)
        kernel.bytes_per_second.push_back(double(kernel.bytes) / measure(kernel, 10));
    for (const auto& kernel : kernels_) print(kernel);
  }

 private:
  void add_copy() {
    const auto bytes = pixels_ * 3 * 2;
    kernels_.push_back({"copy", 2 * bytes,
                        [this, bytes] { copy_bytes(in_.data(), out_.data(), bytes, nullptr); }});
  }

  void add_images(const std::string& name, element_type type, std::vector<image_source> images,
                  std::size_t read) {
    kernels_.push_back({name, read + pixels_ * 3 * element_bytes(type),
                        [to = batch_of(type, out_.data()), from = std::move(images)] {
                          write_images(from, to, nullptr);
                        }});
  }

  void add_conversions() {
    for (const auto type :
         {element_type::u8, element_type::f16, element_type::bf16, element_type::f32})
      add_images("u8 hwc to " + std::string(lade::name(type)) + " chw", type,
                 images_in(in_, count_, side, side), pixels_ * 3);
  }

  void add_crop() {
    auto images = images_in(in_, count_, 256, 256);
    for (std::size_t i = 0; i < count_; ++i) {
      images[i].crop = {double(i % 33), double(i % 31), side, side};
      images[i].flip = i % 2 == 1;
    }
    add_images("crop and flip, f32", element_type::f32, std::move(images), pixels_ * 3);
  }

  void add_resize() {
    add_images("resize 500 x 375, f32", element_type::f32, images_in(in_, count_, 500, 375),
               count_ * 500 * 375 * 3);
  }

  void add_pictures() {
    const auto count = std::max<std::size_t>(count_ / 6, 1);  // 3 MB each, not 0.6
    auto pictures = pictures_in(in_, count);
    const auto read = count * shown_width * shown_height * 3 / 2;
    kernels_.push_back({"NV12 1080p resized, f16", read + count * side * side * 3 * 2,
                        [to = batch_of(element_type::f16, out_.data()),
                         from = std::move(pictures)] { write_pictures(from, to, nullptr); }});
  }

  void add_layout() {
    kernels_.push_back({"layout of f32, chw to hwc", pixels_ * 3 * 2 * sizeof(float), [this] {
                          change_layout({in_.data(), element_type::f32, pixel_layout::chw},
                                        {out_.data(), element_type::f32, pixel_layout::hwc},
                                        {std::int64_t(count_), side, side, 3}, nullptr);
                        }});
  }

  void print(const contestant& kernel) const {
    const double speed = median(kernel.bytes_per_second);
    const double share = speed / median(kernels_.front().bytes_per_second);
    std::printf("{\"figure\": \"%s\", \"gb_per_s\": %.1f, \"share_of_copy\": %.3f}\n",
                kernel.name.c_str(), speed / 1e9, share);
  }

  std::size_t count_;
  std::size_t pixels_;
  bench_memory in_;
  bench_memory out_;
  std::vector<contestant> kernels_;
};

}  // namespace lade::cuda

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Kernels beside a copy by a kernel.");
  const auto images = options.number("images", 1024, "images of a batch");
  const auto rounds = options.number("rounds", 11, "rounds in which the kernels take turns");
  options.done();
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no GPU");
    return 77;
  }
  lade::cuda::kernel_bench(images).run(rounds);
}
