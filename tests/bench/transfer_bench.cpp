// How fast batches are copied to a GPU, beside a bare loop of cudaMemcpyAsync from pinned memory.
// Prints a line of JSON per size: medians over rounds in which the two take turns, and the time of
// the CPU for each batch. Needs a GPU: without one it says so, and exits with 77.
//
// With --without-driver it needs none: it measures the CPU time of to_device itself, over a driver
// that does nothing, as the difference to the same pipeline without to_device, and beside a map
// that does nothing.

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/lade.hpp>

#include "bench.hpp"
#include "idle_driver.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace lade::cuda {

struct transfer_figures {
  double seconds = 0;
  double cpu_seconds = 0;
};

template <class F>
static transfer_figures timed(F work) {
  bench::stopwatch clock;
  work();
  return {clock.wall_s(), clock.cpu_s()};
}

static void require_copied(cudaError_t result) {
  if (result != cudaSuccess) bench::fail(cudaGetErrorString(result));
}

// As fast as the hardware: two pinned buffers, two on the device.
static transfer_figures copy_bare(std::size_t bytes, int batches) {
  device gpu(0);
  current_device current(gpu);
  stream copying(gpu);
  void* from[2];
  void* to[2];
  for (int i = 0; i < 2; ++i) {
    require_copied(cudaHostAlloc(&from[i], bytes, cudaHostAllocPortable));
    require_copied(cudaMalloc(&to[i], bytes));
  }
  auto figures = timed([&] {
    for (int i = 0; i < batches; ++i)
      require_copied(
          cudaMemcpyAsync(to[i % 2], from[i % 2], bytes, cudaMemcpyHostToDevice, copying.handle()));
    copying.synchronize();
  });
  for (int i = 0; i < 2; ++i) {
    require_copied(cudaFreeHost(from[i]));
    require_copied(cudaFree(to[i]));
  }
  return figures;
}

// The batches exist already, in pinned memory, so that only the copies are measured.
static transfer_figures copy_with_lade(runtime& where, pinned_memory& pinned,
                                       const tensor_spec& spec, int batches) {
  std::vector<sample_batch> ready;
  for (int i = 0; i < 2; ++i) {
    std::vector<sample> samples(static_cast<std::size_t>(spec.shape[0]));
    ready.emplace_back(tensor(spec, buffer(spec.bytes(), pinned)), std::move(samples));
  }
  auto number = static_cast<std::uint64_t>(batches);
  auto copies = from_index(number, [ready](std::uint64_t i) { return ready[i % 2]; }) |
                to_device({.device = 0});
  stream trainer((device(0)));
  return timed([&] {
    for (auto& batch : where.run(copies)) batch.wait_on(trainer);
    trainer.synchronize();
  });
}

static void compare(const std::string& name, const tensor_spec& spec, int batches) {
  pinned_memory pinned;
  runtime where;
  std::vector<double> of_loop, of_lade, of_cpu;
  for (int round = 0; round < 7; ++round) {
    auto gigabytes = static_cast<double>(spec.bytes()) * batches / 1e9;
    of_loop.push_back(gigabytes / copy_bare(spec.bytes(), batches).seconds);
    auto figures = copy_with_lade(where, pinned, spec, batches);
    of_lade.push_back(gigabytes / figures.seconds);
    of_cpu.push_back(figures.cpu_seconds / batches * 1e6);
  }
  std::printf(R"({"batch": "%s", "bare_gb_per_s": %.2f, "lade_gb_per_s": %.2f, "share": %.3f, )"
              R"("cpu_us_per_batch": %.1f})"
              "\n",
              name.c_str(), bench::median(of_loop), bench::median(of_lade),
              bench::median(of_lade) / bench::median(of_loop), bench::median(of_cpu));
}

static void compare_all() {
  if (device::count() == 0) {
    std::printf("no GPU: %s\n", device::why_none().c_str());
    std::exit(77);
  }
  compare("f32 [256, 3, 224, 224]", {element_type::f32, {256, 3, 224, 224}}, 40);
  compare("u8 [256, 224, 224, 3]", {element_type::u8, {256, 224, 224, 3}}, 100);
  compare("u8 [256, 8]", {element_type::u8, {256, 8}}, 10'000);
}

// Batches of labelled samples, all of the same two.
static pipeline<sample_batch> small_batches(pinned_memory& pinned, std::uint64_t batches) {
  constexpr std::int64_t size = 256;
  const tensor_spec spec{element_type::u8, {size, 8}};
  std::vector<sample> samples;
  for (std::int64_t i = 0; i < size; ++i) samples.emplace_back(std::to_string(i), i);
  std::vector<sample_batch> ready;
  for (int i = 0; i < 2; ++i)
    ready.emplace_back(tensor(spec, buffer(spec.bytes(), pinned)), samples);
  return from_index(batches, [ready](std::uint64_t i) { return ready[i % 2]; });
}

template <class T>
static double microseconds_per_batch(runtime& where, const pipeline<T>& batches,
                                     std::uint64_t count) {
  auto figures = timed([&] {
    for ([[maybe_unused]] auto& batch : where.run(batches)) {}
  });
  return figures.cpu_seconds / static_cast<double>(count) * 1e6;
}

static void measure_without_driver() {
  const idle_driver driver;
  replace_api(&driver);
  {
    constexpr std::uint64_t count = 20'000;
    pinned_memory pinned;
    runtime where({.threads = 2});
    auto batches = small_batches(pinned, count);
    auto pass = [](sample_batch batch) { return batch; };
    std::vector<double> without, with, of_map, of_to_device;
    for (int round = 0; round < 9; ++round) {
      without.push_back(microseconds_per_batch(where, batches, count));
      with.push_back(microseconds_per_batch(where, batches | to_device(), count));
      auto mapped = microseconds_per_batch(where, batches | map(pass, {.concurrency = 1}), count);
      of_map.push_back(mapped - without.back());
      of_to_device.push_back(with.back() - without.back());
    }
    bench::report("transfer_bench")
        .add("batch", "u8 [256, 8] and labels, no driver")
        .add("cpu_us_without", bench::median(without))
        .add("cpu_us_with", bench::median(with))
        .add("cpu_us_of_map", bench::median(of_map))
        .add("cpu_us_of_to_device", bench::median(of_to_device))
        .print();
  }
  replace_api(nullptr);
}

}  // namespace lade::cuda

int main(int argc, char** argv) {
  bench::options options(argc, argv, "How fast batches are copied to a GPU.");
  auto without_driver = options.flag("without-driver", "the CPU time of to_device, without a GPU");
  options.done();
  if (without_driver)
    lade::cuda::measure_without_driver();
  else
    lade::cuda::compare_all();
}
