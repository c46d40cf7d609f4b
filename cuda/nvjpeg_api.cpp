#include "nvjpeg_api.hpp"

#include "check.hpp"
#include "loaded_library.hpp"
#include "runtime_api.hpp"

#include <lade/cuda/error.hpp>
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/error.hpp>

#include <array>
#include <atomic>
#include <string>

#include <fmt/format.h>

namespace lade::cuda {

static constinit std::atomic<const nvjpeg_api*> replaced_nvjpeg = nullptr;

// 12.1 is the first version that can interpolate chroma.
static void require_version(const nvjpeg_api& functions, const loaded_library& library) {
  int major = 0, minor = 0;
  check_nvjpeg(functions.get_property(nvjpeg_property_major, &major), "load nvJPEG");
  check_nvjpeg(functions.get_property(nvjpeg_property_minor, &minor), "load nvJPEG");
  if (major > 12 || (major == 12 && minor >= 1)) return;
  throw error(errc::unsupported, "load nvJPEG",
              fmt::format("{} is version {}.{}; 12.1 is the first that is supported",
                          library.file(), major, minor));
}

static nvjpeg_api load_nvjpeg() {
  const loaded_library library("nvJPEG", {"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so"});
  nvjpeg_api found{};
  library.find("nvjpegGetProperty", found.get_property);
  library.find("nvjpegCreateExV2", found.create_ex_v2);
  library.find("nvjpegDestroy", found.destroy);
  library.find("nvjpegJpegStateCreate", found.jpeg_state_create);
  library.find("nvjpegJpegStateDestroy", found.jpeg_state_destroy);
  library.find("nvjpegJpegStreamCreate", found.jpeg_stream_create);
  library.find("nvjpegJpegStreamDestroy", found.jpeg_stream_destroy);
  library.find("nvjpegJpegStreamParseHeader", found.jpeg_stream_parse_header);
  library.find("nvjpegJpegStreamGetFrameDimensions", found.jpeg_stream_get_frame_dimensions);
  library.find("nvjpegDecodeParamsCreate", found.decode_params_create);
  library.find("nvjpegDecodeParamsDestroy", found.decode_params_destroy);
  library.find("nvjpegDecodeParamsSetOutputFormat", found.decode_params_set_output_format);
  library.find("nvjpegDecodeParamsSetROI", found.decode_params_set_roi);
  library.find("nvjpegDecodeBatchedSupportedEx", found.decode_batched_supported_ex);
  library.find("nvjpegDecodeBatchedInitialize", found.decode_batched_initialize);
  library.find("nvjpegDecodeBatchedEx", found.decode_batched_ex);
  require_version(found, library);
  return found;
}

const nvjpeg_api& nvjpeg() {
  if (const auto* replaced = replaced_nvjpeg.load(std::memory_order_relaxed)) return *replaced;
  static const nvjpeg_api loaded = load_nvjpeg();
  return loaded;
}

void replace_nvjpeg(const nvjpeg_api* by) noexcept { replaced_nvjpeg = by; }

const std::error_category& nvjpeg_category() noexcept {
  struct nvjpeg_errors final : std::error_category {
    const char* name() const noexcept override { return "nvjpeg"; }
    std::string message(int code) const override {
      constexpr std::array names{"SUCCESS",
                                 "NOT_INITIALIZED",
                                 "INVALID_PARAMETER",
                                 "BAD_JPEG",
                                 "JPEG_NOT_SUPPORTED",
                                 "ALLOCATOR_FAILURE",
                                 "EXECUTION_FAILED",
                                 "ARCH_MISMATCH",
                                 "INTERNAL_ERROR",
                                 "IMPLEMENTATION_NOT_SUPPORTED",
                                 "INCOMPLETE_BITSTREAM"};
      const auto index = static_cast<std::size_t>(code);
      if (index >= names.size()) return fmt::format("status {}", code);
      return std::string("NVJPEG_STATUS_") + names[index];
    }
  };
  static const nvjpeg_errors instance;
  return instance;
}

void check_nvjpeg(nvjpeg_status status, std::string_view doing) {
  if (status == nvjpeg_status::success) return;
  check(api().get_last_error(), doing);
  throw error(std::error_code(static_cast<int>(status), nvjpeg_category()), doing);
}

}  // namespace lade::cuda
