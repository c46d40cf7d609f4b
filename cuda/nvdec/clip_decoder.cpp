#include "clip_decoder.hpp"

#include "../transfers.hpp"
#include "clip_writer.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/cuda/change_layout.hpp>
#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/error.hpp>
#include <lade/media/slot.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

namespace lade::cuda::detail {

static media::clip_options without_texts(media::clip_options options) {
  options.field = {};
  options.start_field = {};
  options.index_directory = {};
  options.decoding.decoder = {};
  options.decoding.options = {};
  return options;
}

static gpu_clip_options checked_options(const gpu_clip_options& options) {
  auto refuse = [](std::string_view reason) {
    throw error(errc::invalid_argument, "decode clips on a GPU", reason);
  };
  if (options.surfaces < 1 || options.surfaces > 16) refuse("surfaces must be 1 to 16");
  if (options.memory && options.memory->on().index() != options.device)
    refuse("the memory is that of another GPU");
  return options;
}

static media::clip_options checked_clip_options(const media::clip_options& options) {
  require_gpu_options(options);
  return without_texts(options);
}

clip_decoder::clip_decoder(const media::clip_options& options, const gpu_clip_options& gpu_options)
    : options_(checked_clip_options(options)),
      cpu_(options),
      surfaces_(checked_options(gpu_options).surfaces),
      on_(gpu_options.device),
      memory_(gpu_options.memory ? share_of(*gpu_options.memory)
                                 : std::make_shared<device_memory>(on_)),
      colours_(options_.decoding) {}

clip_statistics clip_decoder::stats() const {
  std::lock_guard lock(mutex_);
  return counted_;
}

void clip_decoder::count(bool by_gpu, std::string_view reason) {
  std::lock_guard lock(mutex_);
  ++(by_gpu ? counted_.by_gpu : counted_.by_cpu);
  if (counted_.reason.empty()) counted_.reason = reason;
}

stream clip_decoder::take_stream() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return stream(on_);
  auto taken = idle_.back();
  idle_.pop_back();
  return taken;
}

void clip_decoder::give_back(const stream& used) {
  std::lock_guard lock(mutex_);
  idle_.push_back(used);
}

std::pair<media::video, std::vector<std::int64_t>> clip_decoder::open(const sample& in,
                                                                      random& draw) const {
  const auto& bytes = media::encoded_bytes(in, cpu_.field(), "decode " + in.name());
  media::video opened(bytes, in.name(), cpu_.opening());
  auto numbers = cpu_.numbers_for(opened.index(), &in, draw);
  return {std::move(opened), std::move(numbers)};
}

task<bool> clip_decoder::write(const media::video& from, const std::vector<std::int64_t>& numbers,
                               random draw, const tensor& into, const stream& on) {
  const auto reason = co_await try_gpu(from, numbers, draw, into, on);
  if (!reason.empty()) co_await decode_on_cpu(from, numbers, draw, into, on);
  count(reason.empty(), reason);
  co_return reason.empty();
}

// Whether the CPU may succeed after this error.
static bool is_left_to_cpu(const std::error_code& code) {
  return code != errc::stopped && code != errc::no_runtime && code != condition::device_lost;
}

// Returns an empty string, or the reason why the CPU must decode the video.
task<std::string> clip_decoder::try_gpu(const media::video& from,
                                        const std::vector<std::int64_t>& numbers, random draw,
                                        const tensor& into, const stream& on) const {
  try {
    co_await decode_on_gpu(from, numbers, draw, into, on);
  } catch (const error& failed) {
    if (!is_left_to_cpu(failed.code())) throw;
    co_return std::string(failed.what());
  }
  co_return std::string();
}

// Treats the rows of all frames as one image, and separates its channels into planes.
static void separate_channels(const tensor& from, const tensor& into,
                              const media::clip_options& options, const stream& on) {
  constexpr std::int64_t channels = 3;
  const std::int64_t clips = options.sampling.clips;
  const auto elements = static_cast<std::int64_t>(into.spec().elements());
  const auto rows = elements / (clips * options.width * channels);
  change_layout({from.bytes(), from.type(), pixel_layout::hwc},
                {into.bytes(), into.type(), pixel_layout::chw},
                {clips, rows, options.width, channels}, on);
}

task<> clip_decoder::decode_on_gpu(const media::video& from,
                                   const std::vector<std::int64_t>& numbers, random draw,
                                   const tensor& into, const stream& on) const {
  if (options_.layout != media::clip_layout::cthw) {
    co_await decode_frames(options_, from, numbers, draw, into, on);
    co_return;
  }
  auto interleaved = options_;
  interleaved.layout = media::clip_layout::thwc;
  const auto bytes = into.spec().bytes();
  const device_block scratch(memory(), bytes, on);
  const tensor frames(into.spec(), scratch.slice(0, bytes));
  co_await decode_frames(interleaved, from, numbers, draw, frames, on);
  separate_channels(frames, into, options_, on);
  const auto separated = on.record();
  co_await separated.uninterruptible();
}

task<> clip_decoder::decode_frames(const media::clip_options& options, const media::video& from,
                                   const std::vector<std::int64_t>& numbers, random draw,
                                   const tensor& into, const stream& on) const {
  const clip_writer writer(options, colours_, from, numbers, into, draw);
  use_surface write_frame = [&](std::int64_t number, const surface& decoded) {
    writer.write(number, decoded, on);
  };
  surface_options surfaces{.surfaces = surfaces_, .max_pixels = options.decoding.max_pixels};
  co_await decode_surfaces(from, numbers, on, write_frame, surfaces);
}

// Queues the copy of a clip. Returns an event after it; the transfers own `from` until then.
static event queue_clip(transfers& in, const buffer& from, const tensor& into, const stream& on) {
  queued_copies copies(in, on, {from});
  copies.copy_to_device(into.bytes(), from.data(), into.spec().bytes());
  return copies.finish();
}

task<> clip_decoder::decode_on_cpu(const media::video& from,
                                   const std::vector<std::int64_t>& numbers, random draw,
                                   const tensor& into, const stream& on) const {
  auto& current = co_await this_context_reference();
  auto& in = transfers::of(*current.runtime);
  const auto memory = co_await allocate(into.spec().bytes(), in.pinned(on.on()));
  const tensor host(into.spec(), memory);
  cpu_.write_clip(from, numbers, host, draw, current.stop);
  const auto copied = queue_clip(in, memory, into, on);
  co_await copied.uninterruptible();
}

void require_clip_runtime(const context& current) {
  if (!current.runtime) throw error(errc::no_runtime, "decode a clip on a GPU");
}

}  // namespace lade::cuda::detail
