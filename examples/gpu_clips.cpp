#include "gpu.hpp"

#include <lade/cuda/nvdec/decode_clips.hpp>
#include <lade/cuda/to_host.hpp>
#include <lade/lade.hpp>

#include <fmt/format.h>

#include <string>

static std::string clips_by_whom(const lade::cuda::decode_clips& decode) {
  const auto by = decode.stats();
  auto text = fmt::format("{} by NVDEC, {} by the CPU", grouped(by.by_gpu), grouped(by.by_cpu));
  return by.by_cpu == 0 ? text : text + ", the first: " + lade::printable(by.reason);
}

lade::pipeline<lade::sample_batch> clips_by_gpu(const lade::pipeline<lade::sample>& videos,
                                                const lade::media::clip_options& clip,
                                                const options& settings, report& result) {
  if (settings.skip_bad) throw usage_error("--skip-bad does not go with --device");
  const lade::cuda::decode_clips decode(clip, {.device = settings.device});
  result.add_row("GPU", [decode] { return clips_by_whom(decode); });
  return videos | lade::batch(settings.batch) | lade::map(decode) | lade::cuda::to_host();
}
