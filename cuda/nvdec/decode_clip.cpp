#include <lade/cuda/nvdec/decode_clip.hpp>
#include <lade/error.hpp>
#include <lade/this_context.hpp>

#include "../on_cpu_pool.hpp"
#include "clip_decoder.hpp"

#include <vector>

namespace lade::cuda {

decode_clip::decode_clip(const media::clip_options& options, const gpu_clip_options& how)
    : decoder_(std::make_shared<detail::clip_decoder>(options, how)) {}

std::string_view decode_clip::field() const noexcept { return decoder_->cpu().field(); }
const tensor_spec& decode_clip::spec() const noexcept { return decoder_->cpu().spec(); }
bool decode_clip::is_random() const noexcept { return decoder_->cpu().is_random(); }
clip_statistics decode_clip::stats() const { return decoder_->stats(); }

task<device_clip> decode_clip::operator()(const sample& in, random draw) const {
  return on_cpu_pool(decode_sample(decoder_, in, draw));
}

task<device_clip> decode_clip::read(std::shared_ptr<const byte_reader> from, random draw) const {
  return on_cpu_pool(decode_reader(decoder_, std::move(from), draw));
}

task<device_clip> decode_clip::decode_sample(shared_decoder decoder, sample in, random draw) {
  auto& current = co_await this_context_reference();
  detail::require_clip_runtime(current);
  auto chosen = decoder->open(in, draw);
  co_return co_await decode_video(decoder, std::move(chosen.first), std::move(chosen.second), draw);
}

task<device_clip> decode_clip::decode_reader(shared_decoder decoder,
                                             std::shared_ptr<const byte_reader> from, random draw) {
  auto& current = co_await this_context_reference();
  detail::require_clip_runtime(current);
  const auto& cpu = decoder->cpu();
  auto opened = co_await media::video::open(std::move(from), cpu.opening());
  auto numbers = cpu.numbers_for(opened.index(), nullptr, draw);
  opened = co_await opened.fetch(numbers);
  co_return co_await decode_video(decoder, std::move(opened), std::move(numbers), draw);
}

task<device_clip> decode_clip::decode_video(shared_decoder decoder, media::video from,
                                            std::vector<std::int64_t> numbers, random draw) {
  const auto spec = decoder->cpu().spec_of(numbers);
  const auto on = decoder->take_stream();
  device_block memory(decoder->memory(), spec.bytes(), on);
  tensor into(spec, memory.slice(0, spec.bytes()));
  const bool by_gpu = co_await decoder->write(from, numbers, draw, into, on);
  decoder->give_back(on);
  co_return device_clip(std::move(into), std::move(memory), by_gpu);
}

}  // namespace lade::cuda
