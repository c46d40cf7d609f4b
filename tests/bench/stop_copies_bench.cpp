// How long it takes to leave a run whose copies to a GPU are in flight. Prints a line of JSON. The
// gate is a maximum of 100 ms. Needs a GPU: without one it says so, and exits with 77.

#include <lade/cuda/device_batch.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/lade.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "bench.hpp"

namespace lade::cuda {

// The batch is in pinned memory already, so that a run does nothing but copy.
static pipeline<device_batch> endless_copies(pinned_memory& pinned) {
  const tensor_spec spec{element_type::f32, {256, 3, 224, 224}};
  const sample_batch ready(tensor(spec, buffer(spec.bytes(), pinned)), std::vector<sample>(256));
  return from_index(1'000'000'000, [ready](std::uint64_t) { return ready; }) |
         to_device({.device = 0});
}

// Leaves a run as soon as it has delivered so many batches: the next ones are being copied.
static double milliseconds_to_leave(runtime& where, const pipeline<device_batch>& copies,
                                    const stream& trainer, std::size_t batches) {
  auto steps = std::make_unique<run<device_batch>>(where, copies, run_options{});
  for (std::size_t i = 0; i < batches; ++i)
    if (auto batch = steps->wait_next()) batch->wait_on(trainer);
  bench::stopwatch clock;
  steps.reset();
  return clock.wall_s() * 1e3;
}

static int leave_runs(int argc, char** argv) {
  bench::options options(argc, argv, "How long it takes to leave a run that copies to a GPU.");
  const auto rounds = options.number("rounds", 50, "how often a run is left");
  options.done();
  if (device::count() == 0) {
    std::printf("no GPU: %s\n", device::why_none().c_str());
    return 77;
  }
  runtime where;
  pinned_memory pinned;
  const stream trainer(device(0));
  const auto copies = endless_copies(pinned);
  bench::random_stream random(1);
  std::vector<double> milliseconds;
  for (std::size_t i = 0; i < rounds; ++i)
    milliseconds.push_back(milliseconds_to_leave(where, copies, trainer, 1 + random.below(20)));
  bench::report("stop_copies_bench")
      .add("p50_ms", bench::median(milliseconds))
      .add("max_ms", bench::quantile(milliseconds, 1))
      .print();
  return 0;
}

}  // namespace lade::cuda

int main(int argc, char** argv) { return lade::cuda::leave_runs(argc, argv); }
