#include "jpeg_session.hpp"

#include "check.hpp"
#include "runtime_api.hpp"

#include <lade/error.hpp>

#include <new>
#include <utility>

namespace lade::cuda {

static constexpr std::string_view starting_nvjpeg = "start nvJPEG";
static constexpr std::string_view decoding_jpegs = "decode JPEG images on a GPU";

static const unsigned char* file_data(const jpeg_item& item) noexcept {
  return reinterpret_cast<const unsigned char*>(item.source->file().data());
}

// Allocators for nvJPEG. `stream`: the stream that will use the memory, or has used it. If null,
// the memory must be ready for all streams, or any stream may have used it.
static int allocate_on_device(void* context, void** memory, std::size_t bytes,
                              CUstream_st* stream) noexcept {
  try {
    current_device current(*static_cast<const device*>(context));
    const auto result = api().malloc_async(memory, bytes, stream);
    if (result != cudaSuccess || stream) return result;
    return api().stream_synchronize(stream);
  } catch (...) {
    return cudaErrorMemoryAllocation;
  }
}

static int deallocate_on_device(void* context, void* memory, std::size_t,
                                CUstream_st* stream) noexcept {
  try {
    current_device current(*static_cast<const device*>(context));
    if (!stream) (void)api().device_synchronize();
    return api().free_async(memory, stream);
  } catch (...) {
    return cudaErrorInvalidDevice;
  }
}

static int allocate_pinned(void* context, void** memory, std::size_t bytes, CUstream_st*) noexcept {
  return static_cast<jpeg_staging*>(context)->allocate(memory, bytes);
}

static int deallocate_pinned(void* context, void* memory, std::size_t, CUstream_st*) noexcept {
  return static_cast<jpeg_staging*>(context)->deallocate(memory);
}

int jpeg_staging::allocate(void** memory, std::size_t bytes) noexcept try {
  const auto result = api().host_alloc(memory, bytes, cudaHostAllocDefault);
  if (result != cudaSuccess) return result;
  std::unique_ptr<void, int (*)(void*)> owned(
      *memory, [](void* pinned) -> int { return api().free_host(pinned); });
  std::lock_guard lock(mutex_);
  live_.emplace(*memory, bytes);
  (void)owned.release();
  bytes_ += bytes;
  return cudaSuccess;
} catch (const std::bad_alloc&) {
  return cudaErrorMemoryAllocation;
}

int jpeg_staging::deallocate(void* memory) noexcept {
  {
    std::lock_guard lock(mutex_);
    const auto found = live_.find(memory);
    bytes_ -= found->second;
    live_.erase(found);
  }
  return api().free_host(memory);
}

static nvjpeg_status create_handle(int backend, nvjpeg_allocator& on_device,
                                   nvjpeg_allocator& pinned, nvjpeg_pointer<nvjpegHandle>& made) {
  nvjpegHandle* handle = nullptr;
  const auto status =
      nvjpeg().create_ex_v2(backend, &on_device, &pinned, nvjpeg_flag_interpolation, &handle);
  if (status == nvjpeg_status::success) made.reset(handle);
  return status;
}

static bool is_lack_of_engines(nvjpeg_status status) noexcept {
  return status == nvjpeg_status::arch_mismatch ||
         status == nvjpeg_status::implementation_not_supported;
}

jpeg_engines::jpeg_engines(device on, bool hardware)
    : on_(on),
      on_device_{allocate_on_device, deallocate_on_device, &on_},
      pinned_{allocate_pinned, deallocate_pinned, &staging_} {
  current_device current(on);
  capture_guard beside_captures;
  check_nvjpeg(create_handle(nvjpeg_backend_gpu_hybrid, on_device_, pinned_, handles_[1]),
               starting_nvjpeg);
  if (!hardware) return;
  const auto status = create_handle(nvjpeg_backend_hardware, on_device_, pinned_, handles_[0]);
  if (!is_lack_of_engines(status)) check_nvjpeg(status, starting_nvjpeg);
}

static nvjpeg_pointer<nvjpegJpegState> create_jpeg_state(nvjpegHandle* handle) {
  nvjpegJpegState* state = nullptr;
  check_nvjpeg(nvjpeg().jpeg_state_create(handle, &state), starting_nvjpeg);
  return nvjpeg_pointer<nvjpegJpegState>(state);
}

jpeg_session::route_state jpeg_session::create(nvjpegHandle* handle) {
  route_state made;
  made.handle = handle;
  made.state = create_jpeg_state(handle);
  nvjpegJpegStream* header = nullptr;
  check_nvjpeg(nvjpeg().jpeg_stream_create(handle, &header), starting_nvjpeg);
  made.header.reset(header);
  return made;
}

jpeg_session::jpeg_session(const jpeg_engines& engines, bool planar)
    : device_(engines.on()), planar_(planar), stream_(device_), passed_(device_) {
  current_device current(device_);
  capture_guard beside_captures;
  for (auto route : {jpeg_route::hardware, jpeg_route::gpu})
    if (auto* handle = engines.handle(route))
      routes_[static_cast<std::size_t>(route)] = create(handle);
}

int jpeg_session::format() const noexcept {
  return planar_ ? nvjpeg_output_rgb : nvjpeg_output_rgb_interleaved;
}

nvjpegDecodeParams* jpeg_session::params(route_state& with, std::size_t index,
                                         const jpeg_region& part) {
  while (with.params.size() <= index) {
    nvjpegDecodeParams* made = nullptr;
    check_nvjpeg(nvjpeg().decode_params_create(with.handle, &made), starting_nvjpeg);
    nvjpeg_pointer<nvjpegDecodeParams> owned(made);
    check_nvjpeg(nvjpeg().decode_params_set_output_format(made, format()), starting_nvjpeg);
    with.params.push_back(std::move(owned));
  }
  auto* found = with.params[index].get();
  const bool whole = part.width == 0;
  check_nvjpeg(nvjpeg().decode_params_set_roi(found, part.left, part.top, whole ? -1 : part.width,
                                              whole ? -1 : part.height),
               decoding_jpegs);
  return found;
}

// lade's size determines the allocation, nvJPEG's size the writes. They must agree.
bool jpeg_session::route_state::has_size_of(const jpeg_item& item) const {
  unsigned width = 0;
  unsigned height = 0;
  const auto status = nvjpeg().jpeg_stream_get_frame_dimensions(header.get(), &width, &height);
  return status == nvjpeg_status::success && std::cmp_equal(width, item.width) &&
         std::cmp_equal(height, item.height);
}

jpeg_route jpeg_session::route_on(route_state& with, jpeg_route route, const jpeg_item& item) {
  if (!with.handle) return jpeg_route::unsupported;
  const auto& file = item.source->file();
  const auto parsed = nvjpeg().jpeg_stream_parse_header(with.handle, file_data(item), file.size(),
                                                        with.header.get());
  if (parsed == nvjpeg_status::jpeg_not_supported) return jpeg_route::unsupported;
  if (parsed != nvjpeg_status::success || !with.has_size_of(item)) return jpeg_route::damaged;
  int is_unsupported = 1;
  const auto status = nvjpeg().decode_batched_supported_ex(
      with.handle, with.header.get(), params(with, 0, item.source->part()), &is_unsupported);
  return status == nvjpeg_status::success && is_unsupported == 0 ? route : jpeg_route::unsupported;
}

jpeg_route jpeg_session::route(const jpeg_item& item) {
  capture_guard beside_captures;
  const auto first = route_on(routes_[0], jpeg_route::hardware, item);
  return is_on_gpu(first) ? first : route_on(routes_[1], jpeg_route::gpu, item);
}

nvjpeg_image jpeg_session::destination(const tensor& image) const {
  nvjpeg_image to{};
  const std::size_t planes = planar_ ? 3 : 1;
  const auto plane_bytes = static_cast<std::size_t>(image.strides()[0]);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    to.channel[plane] = reinterpret_cast<unsigned char*>(image.bytes()) + plane * plane_bytes;
    to.pitch[plane] = static_cast<std::size_t>(image.strides()[planar_ ? 1 : 0]);
  }
  return to;
}

void jpeg_session::initialize(route_state& with, std::size_t images) {
  if (with.images == images) return;
  with.images = 0;
  check_nvjpeg(nvjpeg().decode_batched_initialize(with.handle, with.state.get(),
                                                  static_cast<int>(images), 1, format()),
               decoding_jpegs);
  with.images = images;
}

nvjpeg_status jpeg_session::enqueue(route_state& with, std::span<jpeg_item* const> items) {
  initialize(with, items.size());
  std::vector<const unsigned char*> data;
  std::vector<std::size_t> bytes;
  std::vector<nvjpeg_image> to;
  std::vector<nvjpegDecodeParams*> parameters;
  for (std::size_t i = 0; i < items.size(); ++i) {
    data.push_back(file_data(*items[i]));
    bytes.push_back(items[i]->source->file().size());
    to.push_back(destination(items[i]->image));
    parameters.push_back(params(with, i, items[i]->source->part()));
  }
  const auto status =
      nvjpeg().decode_batched_ex(with.handle, with.state.get(), data.data(), bytes.data(),
                                 to.data(), parameters.data(), stream_.handle());
  if (status != nvjpeg_status::success) with.images = 0;  // the state must be initialised again
  return status;
}

static bool is_fault_of_nvjpeg(nvjpeg_status status) noexcept {
  return status == nvjpeg_status::execution_failed || status == nvjpeg_status::internal_error;
}

// Damage that nvJPEG does not detect may cause a failure of nvJPEG itself.
static bool may_be_of_an_image(nvjpeg_status status) noexcept {
  return status == nvjpeg_status::bad_jpeg || status == nvjpeg_status::jpeg_not_supported ||
         status == nvjpeg_status::incomplete_bitstream || is_fault_of_nvjpeg(status);
}

// Resets nvJPEG after a failed image. Throws if the device is lost.
void jpeg_session::recover(route_state& with, nvjpeg_status status) {
  (void)api().get_last_error();
  check(api().stream_synchronize(stream_.handle()), decoding_jpegs);
  if (is_fault_of_nvjpeg(status)) with.state = create_jpeg_state(with.handle);
}

// nvJPEG does not report which image of a batch it cannot decode. So after a failure, each is
// decoded alone.
void jpeg_session::decode(std::span<jpeg_item> items, jpeg_route route) {
  std::vector<jpeg_item*> all;
  for (auto& item : items)
    if (item.route == route) all.push_back(&item);
  if (all.empty()) return;
  current_device current(device_);
  capture_guard beside_captures;
  auto& with = routes_[static_cast<std::size_t>(route)];
  const auto status = enqueue(with, all);
  if (!may_be_of_an_image(status)) return check_nvjpeg(status, decoding_jpegs);
  recover(with, status);
  for (auto* item : all) decode_alone(with, *item);
}

// The state's memory is free when the stream has passed the work enqueued with it.
void jpeg_session::decode_alone(route_state& with, jpeg_item& item) {
  check(api().stream_synchronize(stream_.handle()), decoding_jpegs);
  auto* single = &item;
  const auto status = enqueue(with, {&single, 1});
  if (!may_be_of_an_image(status)) return check_nvjpeg(status, decoding_jpegs);
  recover(with, status);
  item.route =
      status == nvjpeg_status::jpeg_not_supported ? jpeg_route::unsupported : jpeg_route::damaged;
}

}  // namespace lade::cuda
