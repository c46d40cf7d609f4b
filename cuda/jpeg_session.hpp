// Owns the objects of nvJPEG that decode a batch of images.

#pragma once

#include "capture_guard.hpp"
#include "nvjpeg_api.hpp"

#include <lade/cuda/device.hpp>
#include <lade/cuda/event.hpp>
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/memory.hpp>
#include <lade/cuda/stream.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace lade::cuda {

// The decoder of an image: the JPEG engines, the GPU's other units, or the CPU for the given
// reason.
enum class jpeg_route : std::uint8_t { hardware, gpu, unsupported, rotated, damaged };

constexpr bool is_on_gpu(jpeg_route route) noexcept { return route <= jpeg_route::gpu; }

// An image in flight.
struct jpeg_item {
  const jpeg_source* source = nullptr;
  int width = 0;  // of the whole image, from its header
  int height = 0;
  jpeg_route route = jpeg_route::unsupported;
  tensor image;                        // in device memory
  std::optional<device_block> memory;  // of `image`
  tensor decoded;                      // by the CPU; must live until it is copied
  std::exception_ptr failure;
};

struct nvjpeg_deleter {
  void operator()(nvjpegHandle* object) const { destroy(nvjpeg().destroy, object); }
  void operator()(nvjpegJpegState* object) const { destroy(nvjpeg().jpeg_state_destroy, object); }
  void operator()(nvjpegJpegStream* object) const { destroy(nvjpeg().jpeg_stream_destroy, object); }
  void operator()(nvjpegDecodeParams* object) const {
    destroy(nvjpeg().decode_params_destroy, object);
  }

 private:
  template <class Object>
  static void destroy(nvjpeg_status (*function)(Object*), Object* object) {
    capture_guard beside_captures;
    (void)function(object);
  }
};
template <class Object>
using nvjpeg_pointer = std::unique_ptr<Object, nvjpeg_deleter>;

// Allocates nvJPEG's pinned memory, and counts it. Thread-safe.
class jpeg_staging {
 public:
  // Return CUDA's results.
  int allocate(void** memory, std::size_t bytes) noexcept;
  int deallocate(void* memory) noexcept;

  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::mutex mutex_;
  std::map<void*, std::size_t> live_;  // sizes; guarded by mutex_
  std::atomic<std::size_t> bytes_ = 0;
};

// nvJPEG's handles on a device: one for the JPEG engines, if there are any, and one for the other
// units. Thread-safe. nvJPEG's GPU memory is allocated from CUDA's stream-ordered pool.
class jpeg_engines {
 public:
  jpeg_engines(device on, bool hardware);
  jpeg_engines(const jpeg_engines&) = delete;

  device on() const noexcept { return on_; }
  bool has(jpeg_route route) const noexcept { return handle(route) != nullptr; }
  nvjpegHandle* handle(jpeg_route route) const noexcept {
    return handles_[static_cast<std::size_t>(route)].get();
  }

  // The pinned memory of the states of all sessions.
  std::size_t pinned_bytes() const noexcept { return staging_.bytes(); }

 private:
  device on_;  // the allocators refer to this and to staging_, and nvJPEG refers to the allocators
  jpeg_staging staging_;
  nvjpeg_allocator on_device_;
  nvjpeg_allocator pinned_;
  std::array<nvjpeg_pointer<nvjpegHandle>, 2> handles_;
};

// Decodes one batch at a time: nvJPEG's states have memory that the GPU uses until it has passed
// the batch. Not thread-safe.
class jpeg_session {
 public:
  jpeg_session(const jpeg_engines& engines, bool planar);
  jpeg_session(const jpeg_session&) = delete;

  const stream& on() const noexcept { return stream_; }
  const event& passed() const noexcept { return passed_; }  // to record after a batch

  // Chooses the decoder of an image whose header has no obstacle.
  jpeg_route route(const jpeg_item& item);

  // Enqueues the decoding of all items with this route, which must have memory. Images that turn
  // out to be damaged or unsupported get another route. So do images for which nvJPEG itself fails,
  // if the device still works. Throws error if the batch has failed.
  void decode(std::span<jpeg_item> items, jpeg_route route);

 private:
  // A handle's objects.
  struct route_state {
    nvjpegHandle* handle = nullptr;  // null: this route is not available
    nvjpeg_pointer<nvjpegJpegState> state;
    std::size_t images = 0;  // the batch size of the state
    nvjpeg_pointer<nvjpegJpegStream> header;

    bool has_size_of(const jpeg_item& item) const;
    std::vector<nvjpeg_pointer<nvjpegDecodeParams>> params;  // by index of an image in a batch
  };

  route_state create(nvjpegHandle* handle);
  jpeg_route route_on(route_state& with, jpeg_route route, const jpeg_item& item);
  nvjpeg_status enqueue(route_state& with, std::span<jpeg_item* const> items);
  void recover(route_state& with, nvjpeg_status status);
  void decode_alone(route_state& with, jpeg_item& item);
  void initialize(route_state& with, std::size_t images);
  nvjpegDecodeParams* params(route_state& with, std::size_t index, const jpeg_region& part);
  nvjpeg_image destination(const tensor& image) const;
  int format() const noexcept;

  device device_;
  bool planar_;
  stream stream_;  // must outlive the states, whose memory is freed on it
  event passed_;
  std::array<route_state, 2> routes_;
};

}  // namespace lade::cuda
