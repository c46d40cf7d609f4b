#include "gpu.hpp"

#include <lade/error.hpp>

#include <string>

[[noreturn]] static void refuse(const options& settings) {
  throw lade::error(lade::errc::unsupported, "use GPU " + std::to_string(settings.device),
                    "this program was built without lade-cuda");
}

lade::pipeline<lade::sample_batch> images_by_gpu(const lade::pipeline<lade::sample>&,
                                                 const lade::media::image_options&,
                                                 const options& settings, report&) {
  refuse(settings);
}

lade::pipeline<lade::sample_batch> clips_by_gpu(const lade::pipeline<lade::sample>&,
                                                const lade::media::clip_options&,
                                                const options& settings, report&) {
  refuse(settings);
}
