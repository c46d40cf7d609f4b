#include "fake_nvjpeg.hpp"

#include "../../cuda/jpeg_header.hpp"
#include "../../cuda/nvjpeg_api.hpp"
#include "../../cuda/runtime_api.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string_view>

namespace lade::cuda {

static fake_nvjpeg* current_nvjpeg = nullptr;

static std::string two_bytes(std::size_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
}

static std::string segment(int marker, const std::string& body) {
  return std::string("\xff") + static_cast<char>(marker) + two_bytes(body.size() + 2) + body;
}

std::string tiny_jpeg::bytes() const {
  std::string file = "\xff\xd8";
  for (const auto& each : segments) file += segment(each[0], each.substr(1));
  std::string frame(1, static_cast<char>(bits));
  frame += two_bytes(static_cast<std::size_t>(height)) + two_bytes(static_cast<std::size_t>(width));
  frame += static_cast<char>(components);
  for (int i = 0; i < components; ++i) {
    frame += static_cast<char>(i + 1);
    frame += static_cast<char>(i == 0 ? sampling : 0x11);
    frame += '\0';
  }
  file += segment(frame_marker, frame) + segment(0xda, "scan") + static_cast<char>(seed);
  constexpr std::size_t least_bits = 6;  // of the three blocks of 8 x 8 pixels
  const auto blocks = static_cast<std::size_t>((width + 7) / 8 * ((height + 7) / 8));
  if (has_pixels) file.append((blocks * least_bits + 7) / 8, '\0');
  return ends ? file + "\xff\xd9" : file;
}

// The seed is the byte behind the scan's header.
static std::uint8_t seed_of(std::string_view file) {
  const auto scan = file.rfind("scan");
  return scan == file.npos ? 0 : static_cast<std::uint8_t>(file[scan + 4]);
}

static int number_at(std::string_view file, std::size_t at) {
  return static_cast<unsigned char>(file[at]) << 8 | static_cast<unsigned char>(file[at + 1]);
}

static std::pair<int, int> size_of(std::string_view file) {
  std::size_t at = 2;
  while ((static_cast<unsigned char>(file[at + 1]) & 0xf0) != 0xc0)
    at += 2 + static_cast<std::size_t>(number_at(file, at + 2));
  return {number_at(file, at + 7), number_at(file, at + 5)};
}

std::uint8_t drawn(std::uint8_t seed, int x, int y, int c) {
  return static_cast<std::uint8_t>(seed * 31 + x * 7 + y * 13 + c * 101);
}

// A handle, a state, a parsed header or parameters.
struct fake_nvjpeg::object {
  explicit object(object* owner) : of(owner) {}

  object* of;  // the handle
  int backend = 0;
  nvjpeg_allocator device{};
  nvjpeg_allocator pinned{};

  // States.
  int images = 0;
  int format = 0;
  void* scratch = nullptr;
  void* staging = nullptr;
  std::atomic<std::size_t> in_flight = 0;

  std::uint8_t seed = 0;  // headers
  unsigned width = 0;
  unsigned height = 0;
  int region[4] = {0, 0, -1, -1};
  static constexpr std::size_t scratch_bytes = 1000;
};

// The images of a batch, as they are drawn when the stream comes to it.
struct fake_nvjpeg::drawing {
  struct image {
    const unsigned char* file;
    std::size_t bytes;
    nvjpeg_image to;
    int region[4];
  };
  object* state = nullptr;
  int format = 0;
  std::vector<image> images;
};

struct fake_nvjpeg::table : nvjpeg_api {
  static fake_nvjpeg& self() { return *current_nvjpeg; }

  template <class Handle>
  static object* as_object(Handle* handle) {
    return reinterpret_cast<object*>(handle);
  }

  template <class F>
  static nvjpeg_status locked(const char* function, F body) {
    std::lock_guard lock(self().mutex_);
    const auto status = self().enter(function);
    return status == nvjpeg_status::success ? body(self()) : status;
  }

  template <class Handle>
  static nvjpeg_status create(const char* function, object* of, Handle** made) {
    return locked(function, [&](fake_nvjpeg& it) {
      *made = reinterpret_cast<Handle*>(new object(of));
      ++it.live_;
      return nvjpeg_status::success;
    });
  }

  // Functions that destroy do not fail.
  static nvjpeg_status erase(object* erased) {
    std::lock_guard lock(self().mutex_);
    if (erased->in_flight > 0) self().fault("a state was destroyed that is in use");
    free_memory(*erased);
    delete erased;
    --self().live_;
    return nvjpeg_status::success;
  }

  static void free_memory(object& state) {
    if (state.scratch)
      state.of->device.deallocate(state.of->device.context, state.scratch, object::scratch_bytes,
                                  nullptr);
    if (state.staging)
      state.of->pinned.deallocate(state.of->pinned.context, state.staging, object::scratch_bytes,
                                  nullptr);
    state.scratch = state.staging = nullptr;
  }

  static nvjpeg_status allocate_memory(object& state) {
    free_memory(state);
    auto allocate = [&](const nvjpeg_allocator& from, void*& memory) {
      return from.allocate(from.context, &memory, object::scratch_bytes, nullptr) == 0;
    };
    return allocate(state.of->device, state.scratch) && allocate(state.of->pinned, state.staging)
               ? nvjpeg_status::success
               : nvjpeg_status::allocator_failure;
  }

  table() {
    get_property = [](int property, int* value) {
      *value = property == nvjpeg_property_major ? 13 : 0;
      return nvjpeg_status::success;
    };
    create_ex_v2 = [](int backend, nvjpeg_allocator* device, nvjpeg_allocator* pinned, unsigned,
                      nvjpegHandle** handle) {
      const bool is_engine = backend == nvjpeg_backend_hardware;
      if (is_engine && !self().options_.has_engines) return nvjpeg_status::arch_mismatch;
      const auto status = create(is_engine ? "create_engines" : "create", nullptr, handle);
      if (status != nvjpeg_status::success) return status;
      as_object(*handle)->backend = backend;
      as_object(*handle)->device = self().memory_of_device_ = *device;
      as_object(*handle)->pinned = *pinned;
      return status;
    };
    destroy = [](nvjpegHandle* handle) { return erase(as_object(handle)); };
    jpeg_state_create = [](nvjpegHandle* handle, nvjpegJpegState** state) {
      return create("jpeg_state_create", as_object(handle), state);
    };
    jpeg_state_destroy = [](nvjpegJpegState* state) { return erase(as_object(state)); };
    jpeg_stream_create = [](nvjpegHandle* handle, nvjpegJpegStream** file) {
      return create("jpeg_stream_create", as_object(handle), file);
    };
    jpeg_stream_destroy = [](nvjpegJpegStream* file) { return erase(as_object(file)); };
    jpeg_stream_parse_header = [](nvjpegHandle*, const unsigned char* data, std::size_t bytes,
                                  nvjpegJpegStream* file) {
      return locked("jpeg_stream_parse_header", [&](fake_nvjpeg& it) {
        const auto seed = seed_of({reinterpret_cast<const char*>(data), bytes});
        as_object(file)->seed = seed;
        const auto header = read_jpeg_header(std::as_bytes(std::span(data, bytes)));
        const bool is_another = it.sizes_.contains(seed);
        as_object(file)->width = static_cast<unsigned>(header.width) + (is_another ? 1000 : 0);
        as_object(file)->height = static_cast<unsigned>(header.height);
        const auto found = it.parsing_.find(seed);
        return found == it.parsing_.end() ? nvjpeg_status::success : found->second;
      });
    };
    jpeg_stream_get_frame_dimensions = [](nvjpegJpegStream* file, unsigned* width,
                                          unsigned* height) {
      return locked("jpeg_stream_get_frame_dimensions", [&](fake_nvjpeg&) {
        *width = as_object(file)->width;
        *height = as_object(file)->height;
        return nvjpeg_status::success;
      });
    };
    decode_params_create = [](nvjpegHandle* handle, nvjpegDecodeParams** params) {
      return create("decode_params_create", as_object(handle), params);
    };
    decode_params_destroy = [](nvjpegDecodeParams* params) { return erase(as_object(params)); };
    decode_params_set_output_format = [](nvjpegDecodeParams*, int) {
      return locked("decode_params_set_output_format",
                    [](fake_nvjpeg&) { return nvjpeg_status::success; });
    };
    decode_params_set_roi = [](nvjpegDecodeParams* params, int left, int top, int width,
                               int height) {
      return locked("decode_params_set_roi", [&](fake_nvjpeg&) {
        const int region[4] = {left, top, width, height};
        std::copy_n(region, 4, as_object(params)->region);
        return nvjpeg_status::success;
      });
    };
    decode_batched_supported_ex = [](nvjpegHandle* handle, nvjpegJpegStream* file,
                                     nvjpegDecodeParams*, int* is_unsupported) {
      return locked("decode_batched_supported_ex", [&](fake_nvjpeg& it) {
        const auto found = it.unsupported_.find(as_object(file)->seed);
        const bool is_engine = as_object(handle)->backend == nvjpeg_backend_hardware;
        *is_unsupported = found != it.unsupported_.end() && (found->second || is_engine);
        return nvjpeg_status::success;
      });
    };
    decode_batched_initialize = [](nvjpegHandle*, nvjpegJpegState* state, int images, int,
                                   int format) {
      return locked("decode_batched_initialize", [&](fake_nvjpeg& it) {
        auto& initialized = *as_object(state);
        if (initialized.in_flight > 0) it.fault("a state was initialized that is in use");
        initialized.images = images;
        initialized.format = format;
        return allocate_memory(initialized);
      });
    };
    decode_batched_ex = [](nvjpegHandle* handle, nvjpegJpegState* state,
                           const unsigned char* const* data, const std::size_t* bytes,
                           nvjpeg_image* to, nvjpegDecodeParams** params, CUstream_st* stream) {
      return locked("decode_batched_ex", [&](fake_nvjpeg& it) {
        auto& used = *as_object(state);
        const auto images = static_cast<std::size_t>(used.images);
        if (used.in_flight > 0) it.fault("a state was used that is in use");
        if (images == 0) it.fault("a state was used that is not initialized");
        const bool is_engine = as_object(handle)->backend == nvjpeg_backend_hardware;
        (is_engine ? it.engine_batches_ : it.gpu_batches_).push_back(images);
        drawing work{&used, used.format, {}};
        auto status = nvjpeg_status::success;
        for (std::size_t i = 0; i < images; ++i) {
          const auto seed = seed_of({reinterpret_cast<const char*>(data[i]), bytes[i]});
          const auto found = it.decoding_.find(seed);
          if (found != it.decoding_.end()) {
            status = found->second;
            break;  // what was before it has been enqueued
          }
          work.images.push_back({data[i], bytes[i], to[i], {}});
          std::copy_n(as_object(params[i])->region, 4, work.images.back().region);
        }
        if (status != nvjpeg_status::success) used.images = 0;
        it.queue(used, std::move(work), stream);
        return status;
      });
    };
  }
};

fake_nvjpeg::fake_nvjpeg(fake_driver& driver, const options& how) : driver_(driver), options_(how) {
  static const table functions;
  current_nvjpeg = this;
  replace_nvjpeg(&functions);
}

fake_nvjpeg::~fake_nvjpeg() {
  std::lock_guard lock(mutex_);
  replace_nvjpeg(nullptr);
  current_nvjpeg = nullptr;
}

nvjpeg_status fake_nvjpeg::enter(const std::string& function) {
  fake_driver::call_library(function);
  const auto planned = failures_.find(function);
  if (planned == failures_.end() || planned->second.second-- > 0) return nvjpeg_status::success;
  const auto with = planned->second.first;
  failures_.erase(planned);
  return with;
}

void fake_nvjpeg::fault(std::string what) {
  std::lock_guard lock(faults_mutex_);
  faults_.push_back(std::move(what));
}

// The driver runs what is queued with its mutex locked, and is called with ours locked. So what is
// queued does not lock ours.
void fake_nvjpeg::queue(object& state, drawing work, CUstream_st* stream) {
  ++state.in_flight;
  auto argument = std::make_unique<drawing>(std::move(work));
  auto run = [](void* queued) {
    std::unique_ptr<drawing> done(static_cast<drawing*>(queued));
    if (!current_nvjpeg) return;  // the device has failed, and the test is over
    current_nvjpeg->draw(*done);
    --done->state->in_flight;
  };
  if (api().launch_host_func(stream, run, argument.get()) == cudaSuccess)
    (void)argument.release();
  else
    --state.in_flight;
}

void fake_nvjpeg::draw(const drawing& work) {
  const bool planar = work.format == nvjpeg_output_rgb;
  for (const auto& image : work.images) {
    const std::string_view file(reinterpret_cast<const char*>(image.file), image.bytes);
    const bool whole = image.region[2] < 0;
    const auto [full_width, full_height] = size_of(file);
    const int width = whole ? full_width : image.region[2];
    const int height = whole ? full_height : image.region[3];
    const auto row_bytes = static_cast<std::size_t>(width) * (planar ? 1 : 3);
    for (int y = 0; y < height; ++y)
      for (int c = 0; c < (planar ? 3 : 1); ++c) {
        auto* row = image.to.channel[c] + static_cast<std::size_t>(y) * image.to.pitch[c];
        if (!driver_.may_access(row, row_bytes)) return;
        for (std::size_t i = 0; i < row_bytes; ++i) {
          const int x = image.region[0] + static_cast<int>(planar ? i : i / 3);
          const int channel = planar ? c : static_cast<int>(i % 3);
          row[i] = drawn(seed_of(file), x, image.region[1] + y, channel);
        }
      }
  }
}

void fake_nvjpeg::fail_next(const std::string& function, nvjpeg_status with, std::size_t after) {
  std::lock_guard lock(mutex_);
  failures_[function] = {with, after};
}

void fake_nvjpeg::set_decoding(std::uint8_t seed, nvjpeg_status to) {
  std::lock_guard lock(mutex_);
  decoding_[seed] = to;
}

void fake_nvjpeg::set_larger(std::uint8_t seed) {
  std::lock_guard lock(mutex_);
  sizes_.insert(seed);
}

void fake_nvjpeg::set_parsing(std::uint8_t seed, nvjpeg_status to) {
  std::lock_guard lock(mutex_);
  parsing_[seed] = to;
}

void fake_nvjpeg::set_unsupported_by_engines(std::uint8_t seed) {
  std::lock_guard lock(mutex_);
  unsupported_[seed] = false;
}

void fake_nvjpeg::set_unsupported(std::uint8_t seed) {
  std::lock_guard lock(mutex_);
  unsupported_[seed] = true;
}

std::vector<std::size_t> fake_nvjpeg::engine_batches() const {
  std::lock_guard lock(mutex_);
  return engine_batches_;
}

std::vector<std::size_t> fake_nvjpeg::gpu_batches() const {
  std::lock_guard lock(mutex_);
  return gpu_batches_;
}

nvjpeg_allocator fake_nvjpeg::memory_of_device() const {
  std::lock_guard lock(mutex_);
  return memory_of_device_;
}

std::size_t fake_nvjpeg::live_objects() const {
  std::lock_guard lock(mutex_);
  return live_;
}

std::vector<std::string> fake_nvjpeg::faults() const {
  std::lock_guard lock(faults_mutex_);
  return faults_;
}

}  // namespace lade::cuda
