#include <lade/buffer_pool.hpp>
#include <lade/cuda/error.hpp>
#include <lade/cuda/nvdec/decode_clip.hpp>
#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/error.hpp>
#include <lade/media/slot.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "../check.hpp"
#include "../on_cpu_pool.hpp"
#include "../runtime_api.hpp"
#include "clip_writer.hpp"

#include <mutex>
#include <optional>
#include <vector>

namespace lade::cuda {

// Streams are used by one clip after another: to make one takes longer than to decode a frame.
struct decode_clip::shared_state {
  explicit shared_state(const gpu_clip_options& how)
      : on(how.device),
        memory(how.memory ? lade::detail::share_of(*how.memory)
                          : std::make_shared<device_memory>(on)) {}

  device_resource& resource() const { return static_cast<device_resource&>(*memory); }

  stream take() {
    std::lock_guard lock(mutex);
    if (idle.empty()) return stream(on);
    auto taken = std::move(idle.back());
    idle.pop_back();
    return taken;
  }
  void give_back(const stream& used) {
    std::lock_guard lock(mutex);
    idle.push_back(used);
  }
  void count(bool by_gpu, std::string_view reason) {
    std::lock_guard lock(mutex);
    ++(by_gpu ? counted.by_gpu : counted.by_cpu);
    if (counted.reason.empty()) counted.reason = reason;
  }

  const device on;
  const std::shared_ptr<memory_resource> memory;
  std::mutex mutex;          // guards all that follows
  std::vector<stream> idle;  // all work of theirs has finished
  clip_statistics counted;
};

static media::clip_options without_texts(media::clip_options options) {
  options.field = {};
  options.start_field = {};
  options.index_directory = {};
  options.decoding.decoder = {};
  options.decoding.options = {};
  return options;
}

static void require_gpu_options(const gpu_clip_options& how) {
  auto refuse = [](std::string_view why) {
    throw error(errc::invalid_argument, "decode clips on a GPU", why);
  };
  if (how.surfaces < 1 || how.surfaces > 16) refuse("surfaces must be 1 to 16");
  if (how.memory && how.memory->on().index() != how.device)
    refuse("the memory is that of another GPU");
}

decode_clip::decode_clip(const media::clip_options& options, const gpu_clip_options& how)
    : options_(without_texts(options)), how_(how), cpu_(options) {
  require_gpu_options(options);
  require_gpu_options(how);
  shared_ = std::make_shared<shared_state>(how);
}

clip_statistics decode_clip::stats() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->counted;
}

task<device_clip> decode_clip::operator()(const sample& in, random draw) const {
  return on_cpu_pool(decode_sample(*this, in, draw));
}

task<device_clip> decode_clip::read(std::shared_ptr<const byte_reader> from, random draw) const {
  return on_cpu_pool(decode_reader(*this, std::move(from), draw));
}

static void require_runtime(const context& here) {
  if (!here.runtime) throw error(errc::no_runtime, "decode a clip on a GPU");
}

task<device_clip> decode_clip::decode_sample(decode_clip self, sample in, random draw) {
  auto& here = co_await lade::detail::this_context_reference();
  require_runtime(here);
  const auto& bytes = media::encoded_bytes(in, self.field(), "decode " + in.name());
  media::video opened(bytes, in.name(), self.cpu_.opening());
  auto numbers = self.cpu_.numbers_for(opened.index(), &in, draw);
  co_return co_await decode_video(self, std::move(opened), std::move(numbers), draw);
}

task<device_clip> decode_clip::decode_reader(decode_clip self,
                                             std::shared_ptr<const byte_reader> from, random draw) {
  auto& here = co_await lade::detail::this_context_reference();
  require_runtime(here);
  auto opened = co_await media::video::open(std::move(from), self.cpu_.opening());
  auto numbers = self.cpu_.numbers_for(opened.index(), nullptr, draw);
  opened = co_await opened.fetch(numbers);
  co_return co_await decode_video(self, std::move(opened), std::move(numbers), draw);
}

// Whether the CPU may succeed.
static bool is_left_to_cpu(const std::error_code& code) {
  return code != errc::stopped && code != errc::no_runtime && code != condition::device_lost;
}

// `into` and the others live in the frame of the caller, which awaits this. Empty, or why the CPU
// must decode the video.
static task<std::string> decode_on_gpu(const media::clip_options& options, int surfaces,
                                       const media::video& from,
                                       const std::vector<std::int64_t>& numbers, const tensor& into,
                                       const stream& on, random draw) {
  try {
    const clip_writer writer(options, from.stream(), numbers, into, draw);
    use_surface write = [&](std::int64_t number, const surface& decoded) {
      writer.write(number, decoded, on);
    };
    surface_options how{.surfaces = surfaces, .max_pixels = options.decoding.max_pixels};
    co_await decode_surfaces(from, numbers, on, write, how);
  } catch (const error& failed) {
    if (!is_left_to_cpu(failed.code())) throw;
    co_return std::string(failed.what());
  }
  co_return std::string();
}

// The host's memory must live until the copy has been made, whatever happens.
static task<> copy_to_gpu(const tensor& from, const tensor& into, const stream& on) {
  {
    const current_device current(on.on());
    check(api().memcpy_async(into.bytes(), from.bytes(), from.spec().bytes(),
                             cudaMemcpyHostToDevice, on.handle()),
          "copy a clip to a GPU");
  }
  try {
    const auto copied = on.record();
    co_await copied.uninterruptible();
  } catch (...) {
    (void)api().stream_synchronize(on.handle());
    throw;
  }
}

task<device_clip> decode_clip::decode_video(decode_clip self, media::video from,
                                            std::vector<std::int64_t> numbers, random draw) {
  auto& here = co_await lade::detail::this_context_reference();
  auto& shared = *self.shared_;
  const auto spec = self.cpu_.spec_of(numbers);
  const auto on = shared.take();
  device_block memory(shared.resource(), spec.bytes(), on);
  tensor into(spec, memory.slice(0, spec.bytes()));
  const auto reason =
      co_await decode_on_gpu(self.options_, self.how_.surfaces, from, numbers, into, on, draw);
  if (!reason.empty()) {
    const auto host_memory = co_await allocate(spec.bytes());
    const tensor host(spec, host_memory);
    self.cpu_.write_clip(from, numbers, host, draw, here.stop);
    co_await copy_to_gpu(host, into, on);
  }
  shared.count(reason.empty(), reason);
  shared.give_back(on);
  co_return device_clip(std::move(into), std::move(memory), reason.empty());
}

}  // namespace lade::cuda
