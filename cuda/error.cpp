#include "check.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/error.hpp>

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace lade::cuda {

static bool is_sticky(int code) noexcept {
  constexpr std::array sticky{
      cudaErrorECCUncorrectable,    cudaErrorLaunchTimeout,       cudaErrorAssert,
      cudaErrorHardwareStackError,  cudaErrorIllegalInstruction,  cudaErrorMisalignedAddress,
      cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,           cudaErrorIllegalAddress,
      cudaErrorLaunchFailure,       cudaErrorNvlinkUncorrectable, cudaErrorContextIsDestroyed,
      cudaErrorExternalDevice,      cudaErrorTensorMemoryLeak,    cudaErrorContained,
      cudaErrorMpsClientTerminated};
  return std::ranges::find(sticky, static_cast<cudaError_t>(code)) != sticky.end();
}

const std::error_category& category() noexcept {
  struct cuda_category final : std::error_category {
    const char* name() const noexcept override { return "cuda"; }
    std::string message(int code) const override {
      auto result = static_cast<cudaError_t>(code);
      return fmt::format("{}: {}", cudaGetErrorName(result), cudaGetErrorString(result));
    }
    std::error_condition default_error_condition(int code) const noexcept override {
      if (is_sticky(code)) return condition::device_lost;
      return {code, *this};
    }
  };
  static const cuda_category instance;
  return instance;
}

// Clears the runtime's last error, which other code could mistake for its own.
static void forget_failure() noexcept { (void)api().get_last_error(); }

void check(cudaError_t result, std::string_view doing) {
  if (result == cudaSuccess) return;
  forget_failure();
  throw error(std::error_code(result, category()), doing);
}

bool is_finished(cudaError_t result, std::string_view doing) {
  if (result == cudaErrorNotReady) {
    forget_failure();
    return false;
  }
  check(result, doing);
  return true;
}

}  // namespace lade::cuda
