// --device without NVDEC: the CPU decodes, and a copy brings the batches to the GPU.

#include "gpu.hpp"

#include <lade/cuda/device.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/cuda/to_host.hpp>
#include <lade/lade.hpp>

lade::pipeline<lade::sample_batch> clips_by_gpu(const lade::pipeline<lade::sample>& videos,
                                                const lade::media::clip_options& clip,
                                                const options& settings, report& result) {
  if (settings.skip_bad) throw usage_error("--skip-bad does not go with --device");
  const lade::cuda::device gpu(settings.device);
  result.add_row("GPU", [] { return "this program was built without lade-nvdec"; });
  return videos | lade::batch_into(lade::media::decode_clip(clip), {.size = settings.batch}) |
         lade::cuda::to_device({.device = gpu.index()}) | lade::cuda::to_host();
}
