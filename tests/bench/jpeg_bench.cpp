// How many JPEG images a second nvJPEG decodes through lade, beside a bare loop over the same
// library. Prints a line of JSON for each: the median over rounds in which they take turns. Needs a
// GPU and nvJPEG: without one it says so, and exits with 77.

#include "../../cuda/nvjpeg_api.hpp"

#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include "../cuda/jpeg_files.hpp"
#include "bench.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace lade::cuda {

static constexpr int width = 500, height = 375;  // as in ImageNet
static constexpr std::size_t batch_size = 128;
static constexpr int batches = 16;   // of a round
static constexpr int at_a_time = 2;  // of both contestants

static void require_cuda(cudaError_t result) {
  if (result != cudaSuccess) bench::fail(cudaGetErrorString(result));
}

static void require_nvjpeg(nvjpeg_status status) { check_nvjpeg(status, "run the bare loop"); }

// The same that torch_jpeg.py draws.
static buffer encode(unsigned seed) {
  std::vector<unsigned char> pixels;
  for (unsigned y = 0; y < height; ++y)
    for (unsigned i = 0; i < 3 * width; ++i)
      pixels.push_back(static_cast<unsigned char>((i * y + seed) / 97 + i * 7919 % 23));
  return encode_jpeg({.width = width, .height = height}, pixels);
}

// A thread of the bare loop: a state, a stream and memory for a batch.
class bare_worker {
 public:
  bare_worker(nvjpegHandle* handle, const std::vector<buffer>& files) : handle_(handle) {
    require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    require_nvjpeg(nvjpeg().jpeg_state_create(handle, &state_));
    require_nvjpeg(nvjpeg().decode_batched_initialize(handle, state_, batch_size, 1,
                                                      nvjpeg_output_rgb_interleaved));
    void* memory = nullptr;
    constexpr std::size_t image_bytes = std::size_t{3} * width * height;
    require_cuda(cudaMalloc(&memory, batch_size * image_bytes));
    for (std::size_t i = 0; i < batch_size; ++i) {
      data_.push_back(reinterpret_cast<const unsigned char*>(files[i].data()));
      bytes_.push_back(files[i].size());
      nvjpeg_image image{};
      image.channel[0] = static_cast<unsigned char*>(memory) + i * image_bytes;
      image.pitch[0] = std::size_t{3} * width;
      images_.push_back(image);
      nvjpegDecodeParams* params = nullptr;
      require_nvjpeg(nvjpeg().decode_params_create(handle, &params));
      require_nvjpeg(
          nvjpeg().decode_params_set_output_format(params, nvjpeg_output_rgb_interleaved));
      params_.push_back(params);
    }
  }

  void run() {
    for (int i = 0; i < batches / at_a_time; ++i) {
      require_nvjpeg(nvjpeg().decode_batched_ex(handle_, state_, data_.data(), bytes_.data(),
                                                images_.data(), params_.data(), stream_));
      require_cuda(cudaStreamSynchronize(stream_));
    }
  }

 private:
  nvjpegHandle* handle_;
  nvjpegJpegState* state_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::vector<const unsigned char*> data_;
  std::vector<std::size_t> bytes_;
  std::vector<nvjpeg_image> images_;
  std::vector<nvjpegDecodeParams*> params_;
};

static task<> decode_batches(const jpeg_decoder& decoder, const std::vector<buffer>& files) {
  for (int i = 0; i < batches / at_a_time; ++i) {
    std::vector<jpeg_source> sources;
    for (const auto& file : files) sources.emplace_back(file);
    const auto decoded = co_await decoder.decode(std::move(sources));
    for (const auto& each : decoded) (void)each.image();
  }
}

static task<> decode_side_by_side(const jpeg_decoder& decoder, const std::vector<buffer>& files) {
  scope children(co_await this_context());
  for (int i = 0; i < at_a_time; ++i) children.start(decode_batches(decoder, files));
  co_await children.join();
}

template <class F>
static double images_per_second(F run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return double{batches} * batch_size / seconds.count();
}

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

// Both use the same units of the GPU: the engines, or the others.
static void compare(bool hardware, const std::vector<buffer>& files) {
  runtime runtime({.threads = at_a_time});
  jpeg_decoder decoder(device(0), {}, {.hardware = hardware, .batches = at_a_time});
  if (hardware && !decoder.has_hardware()) return;
  nvjpegHandle* handle = nullptr;
  require_nvjpeg(
      nvjpeg().create_ex_v2(hardware ? nvjpeg_backend_hardware : nvjpeg_backend_gpu_hybrid, nullptr,
                            nullptr, nvjpeg_flag_interpolation, &handle));
  std::vector<bare_worker> workers;
  for (int i = 0; i < at_a_time; ++i) workers.emplace_back(handle, files);
  auto bare = [&] {
    std::vector<std::thread> threads;
    for (auto& worker : workers) threads.emplace_back([&worker] { worker.run(); });
    for (auto& thread : threads) thread.join();
  };
  auto ours = [&] { sync_wait(runtime, decode_side_by_side(decoder, files)); };
  std::vector<double> bare_rates, our_rates;
  constexpr int warm_up = 2, rounds = 11;
  for (int round = 0; round < warm_up + rounds; ++round) {
    const double bare_rate = images_per_second(bare);
    const double our_rate = images_per_second(ours);
    if (round < warm_up) continue;
    bare_rates.push_back(bare_rate);
    our_rates.push_back(our_rate);
  }
  std::printf(
      "{\"bench\": \"jpeg\", \"units\": \"%s\", \"bare_images_per_s\": %.0f, "
      "\"lade_images_per_s\": %.0f, \"ratio\": %.3f}\n",
      hardware ? "engines" : "others", median(bare_rates), median(our_rates),
      median(our_rates) / median(bare_rates));
}

static int run_jpeg_bench() {
  if (const auto why = why_no_jpegs(); !why.empty()) {
    std::puts(why.c_str());
    return 77;
  }
  std::vector<buffer> files;
  for (unsigned i = 0; i < batch_size; ++i) files.push_back(encode(i));
  for (bool hardware : {true, false}) compare(hardware, files);
  return 0;
}

}  // namespace lade::cuda

int main() { return lade::cuda::run_jpeg_bench(); }
