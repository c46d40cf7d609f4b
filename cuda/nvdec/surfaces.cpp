#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>

#include "../gpu_work.hpp"
#include "../on_cpu_pool.hpp"
#include "sessions.hpp"
#include "surface_decoder.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <stop_token>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::cuda {

// The frames to decode from one range of packets, by timestamp.
class frame_selection final : public surface_consumer {
 public:
  frame_selection(const media::packet_index& index, use_surface& use) : index_(index), use_(use) {}

  void select(const std::vector<std::int64_t>& numbers) {
    by_time_.clear();
    for (const auto number : numbers) by_time_.emplace(index_.pts(number), number);
  }

  bool needs(std::int64_t pts) const override { return by_time_.contains(pts); }
  void consume(std::int64_t pts, const surface& shown) override {
    use_(by_time_.at(pts), shown);
    by_time_.erase(pts);
    ++delivered_;
  }

  bool have_all() const noexcept { return by_time_.empty(); }
  std::uint64_t delivered() const noexcept { return delivered_; }

  void require_all() const {
    if (by_time_.empty()) return;
    const auto number = by_time_.begin()->second;
    throw error(errc::invalid_data,
                fmt::format("decode frame {} of {} with NVDEC", number, index_.stream().name()),
                "it is not shown");
  }

 private:
  const media::packet_index& index_;
  use_surface& use_;
  std::map<std::int64_t, std::int64_t> by_time_;
  std::uint64_t delivered_ = 0;
};

// Whether a packet is shown before the key frame of the range. Decoding it may need earlier
// packets.
static bool is_leading(const media::packet_index& index, const media::packet_range& range,
                       std::size_t i) {
  const auto packets = index.packets();
  return range.first > 0 && packets[i].pts < packets[range.first].pts;
}

// All references must outlive the task.
static task<> decode_range(const media::video& from, const media::packet_range& range,
                           surface_decoder& decoder, frame_selection& selection,
                           media::selection_statistics& counted, const std::stop_token& stop) {
  selection.select(range.frames);
  decoder.begin();
  ++counted.ranges;
  for (auto i = range.first; i < range.last && !selection.have_all(); ++i) {
    if (is_leading(from.index(), range, i)) continue;
    if (stop.stop_requested())
      throw error(errc::stopped, "decode frames of " + from.stream().name());
    co_await decoder.wait_for_surface();
    decoder.send(from.packet_at(i));
    ++counted.packets;
  }
  if (!selection.have_all()) decoder.finish();
  selection.require_all();
}

static void require_surface_option(bool condition, std::string_view reason) {
  if (!condition) throw error(errc::invalid_argument, "decode with NVDEC", reason);
}

static bool is_even_edge(int edge) {
  constexpr int most = 32766;
  return edge >= 0 && edge <= most && edge % 2 == 0;
}

static void check_crop(const surface_region& crop) {
  const bool is_whole = crop.width == 0 && crop.height == 0;
  require_surface_option(is_whole || (crop.width != 0 && crop.height != 0),
                         "only one of the crop's width and height is set");
  require_surface_option(!is_whole || (crop.left == 0 && crop.top == 0), "the crop has no size");
  require_surface_option(is_even_edge(crop.left) && is_even_edge(crop.top) &&
                             is_even_edge(crop.width) && is_even_edge(crop.height),
                         "the crop must consist of even numbers, up to 32766");
}

static void check_surface_options(const surface_options& options) {
  const auto require = require_surface_option;
  require(options.surfaces >= 1 && options.surfaces <= 16, "surfaces must be 1 to 16");
  require((options.width == 0) == (options.height == 0), "only one of width and height is set");
  require(is_even_edge(options.width) && is_even_edge(options.height),
          "width and height must be even, up to 32766");
  check_crop(options.crop);
}

static task<> decode_on_pool(media::video from, std::vector<std::int64_t> numbers, stream on,
                             use_surface& use, surface_options options,
                             media::selection_statistics* counted) {
  check_surface_options(options);
  const auto& index = from.index();
  if (index.is_sequential())
    throw error(errc::unsupported, fmt::format("decode {} with NVDEC", from.stream().name()),
                "its frames cannot be identified by their times");
  const auto ranges = index.ranges(numbers);
  if (ranges.empty()) co_return;
  auto& current = co_await this_context_reference();
  if (!current.runtime) throw error(errc::no_runtime, "decode " + from.stream().name());
  auto sessions = current.runtime->service<decoder_service>().of(on.on());
  co_await sessions->free.acquire();
  const session_permit permit(*sessions);
  const gpu_work work(current);

  media::selection_statistics ignored;
  auto& statistics = counted ? *counted : ignored;
  frame_selection selection(index, use);
  surface_decoder decoder(sessions, from.stream(), on, options, selection);
  std::exception_ptr failed;
  try {
    for (const auto& each : ranges)
      co_await decode_range(from, each, decoder, selection, statistics, current.stop);
  } catch (...) {
    failed = std::current_exception();
  }
  statistics.frames += selection.delivered();
  co_await decoder.settle();
  if (failed) std::rethrow_exception(failed);
}

task<> decode_surfaces(media::video from, std::vector<std::int64_t> numbers, stream on,
                       use_surface& use, surface_options options,
                       media::selection_statistics* counted) {
  return on_cpu_pool(
      decode_on_pool(std::move(from), std::move(numbers), on, use, options, counted));
}

decoder_statistics decoders_of(runtime& in, device on) {
  const auto sessions = in.service<decoder_service>().of(on);
  const auto& counted = *sessions->counters;
  return {.sessions = sessions->engines,
          .created = counted.created,
          .reconfigured = counted.reconfigured,
          .reused = counted.reused,
          .destroyed = counted.destroyed,
          .abandoned = counted.abandoned};
}

}  // namespace lade::cuda
