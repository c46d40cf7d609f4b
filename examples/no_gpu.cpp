#include "gpu.hpp"

#include <lade/error.hpp>

#include <string>

lade::pipeline<lade::sample_batch> by_gpu(const lade::pipeline<lade::sample_batch>&, int device) {
  throw lade::error(lade::errc::unsupported, "use GPU " + std::to_string(device),
                    "this program was built without lade-cuda");
}
