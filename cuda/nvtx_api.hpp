// The table of NVTX functions that lade calls, which tests can replace.

#pragma once

#include <nvtx3/nvToolsExt.h>

namespace lade::cuda {

struct nvtx_api {
  decltype(&::nvtxDomainCreateA) domain_create = ::nvtxDomainCreateA;
  decltype(&::nvtxDomainDestroy) domain_destroy = ::nvtxDomainDestroy;
  decltype(&::nvtxDomainRangeStartEx) range_start = ::nvtxDomainRangeStartEx;
  decltype(&::nvtxDomainRangeEnd) range_end = ::nvtxDomainRangeEnd;
};

}  // namespace lade::cuda
