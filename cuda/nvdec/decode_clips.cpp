#include <lade/cuda/nvdec/decode_clips.hpp>
#include <lade/error.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>
#include <lade/when_all.hpp>

#include "../capture_guard.hpp"
#include "../label_copy.hpp"
#include "../on_cpu_pool.hpp"
#include "../runtime_api.hpp"
#include "clip_decoder.hpp"
#include "sessions.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace lade::cuda {

namespace detail {

// The queue of the clips of a batch, shared by several coroutines. Their caller owns it and awaits
// them.
class batch_of_clips {
 public:
  batch_of_clips(clip_decoder& by, const std::vector<sample>& samples, const tensor& into,
                 const event& allocated, random draw)
      : by_(by), samples_(samples), into_(into), allocated_(allocated), seed_(draw()) {}

  // Decodes clips until none is left, or one has failed.
  task<> decode_some() {
    while (!failed_) {
      const auto i = next_++;
      if (i >= samples_.size()) co_return;
      const auto on = by_.take_stream();
      try {
        co_await decode(i, on);
      } catch (...) {
        failed_ = true;
        capture_guard beside_captures;
        (void)api().stream_synchronize(on.handle());  // then no work writes to the slot
        throw;
      }
      by_.give_back(on);
    }
  }

 private:
  task<> decode(std::size_t i, const stream& on) {
    random draw(seed_, i);
    const auto chosen = by_.open(samples_[i], draw);
    const auto slot = into_[static_cast<std::int64_t>(i)];
    on.wait(allocated_);
    co_await by_.write(chosen.first, chosen.second, draw, slot, on);
  }

  clip_decoder& by_;
  const std::vector<sample>& samples_;
  const tensor& into_;
  const event& allocated_;
  const std::uint64_t seed_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace detail

decode_clips::decode_clips(const media::clip_options& options, const gpu_clip_options& how)
    : decoder_(std::make_shared<detail::clip_decoder>(options, how)), order_(decoder_->on()) {
  if (options.sampling.end == media::clip_end::shorten)
    throw error(errc::invalid_argument, "make cuda::decode_clips",
                "clips of different lengths have no slot");
}

const tensor_spec& decode_clips::spec() const noexcept { return decoder_->cpu().spec(); }
bool decode_clips::is_random() const noexcept { return decoder_->cpu().is_random(); }
clip_statistics decode_clips::stats() const { return decoder_->stats(); }

task<device_batch> decode_clips::operator()(std::vector<sample> samples, random draw) const {
  return on_cpu_pool(decode(*this, std::move(samples), draw));
}

static std::size_t clips_at_a_time(runtime& in, device on) {
  const std::size_t threads = in.pool().size();
  try {
    const auto sessions = in.service<decoder_service>().of(on);
    return std::max(threads, 2 * static_cast<std::size_t>(sessions->engines));
  } catch (const error&) {
    return threads;  // without NVDEC, CPU threads decode
  }
}

static task<> decode_all(detail::batch_of_clips& clips, std::size_t at_a_time) {
  std::vector<task<>> workers;
  for (std::size_t i = 0; i < at_a_time; ++i) workers.push_back(on_cpu_pool(clips.decode_some()));
  co_await when_all(std::move(workers));
}

static std::vector<sample> without_videos(std::vector<sample> samples, std::string_view field) {
  for (auto& each : samples)
    each = field.empty() ? std::move(each).without_data() : std::move(each).without_field(field);
  return samples;
}

task<device_batch> decode_clips::decode(decode_clips self, std::vector<sample> samples,
                                        random draw) {
  auto& current = co_await this_context_reference();
  detail::require_clip_runtime(current);
  if (samples.empty())
    throw error(errc::invalid_argument, "decode a batch of clips", "there are no samples");
  auto& decoder = *self.decoder_;
  const auto count = static_cast<std::int64_t>(samples.size());
  const tensor_spec spec{self.spec().type, self.spec().shape.prepend(count)};
  std::vector<device_block> blocks{device_block(decoder.memory(), spec.bytes(), self.order_)};
  const tensor into(spec, blocks[0].slice(0, spec.bytes()));
  auto ready = self.order_.record();
  detail::batch_of_clips clips(decoder, samples, into, ready, draw);
  co_await decode_all(clips,
                      std::min(samples.size(), clips_at_a_time(*current.runtime, decoder.on())));
  auto labels = co_await copy_labels(samples, decoder.memory(), self.order_, blocks);
  const auto field = decoder.cpu().field();
  std::vector<named_tensor> tensors{
      named_tensor(field.empty() ? "data" : std::string(field), into)};
  co_return device_batch(std::move(tensors), without_videos(std::move(samples), field),
                         std::move(labels), std::move(blocks), std::move(ready));
}

}  // namespace lade::cuda
