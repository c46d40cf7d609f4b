#include "sample_converter.hpp"

#include "av_messages.hpp"

#include <lade/error.hpp>

extern "C" {
#include <libavutil/audio_fifo.h>
#include <libswresample/swresample.h>
}

namespace lade::media {

void swr_deleter::operator()(SwrContext* freed) const noexcept { swr_free(&freed); }
void swr_deleter::operator()(AVAudioFifo* freed) const noexcept { av_audio_fifo_free(freed); }

void sample_converter::make_context(AVSampleFormat from) {
  const av_messages messages;
  SwrContext* made = nullptr;
  const int result = swr_alloc_set_opts2(&made, &layout_, to_, sample_rate_, &layout_, from,
                                         sample_rate_, 0, nullptr);
  context_.reset(made);
  check_av(result, "convert samples", messages);
  check_av(swr_init(made), "convert samples", messages);
  from_ = from;
}

void sample_converter::convert(const std::uint8_t** planes, AVSampleFormat from, int samples,
                               std::uint8_t** into) {
  if (!context_ || from != from_) make_context(from);
  const av_messages messages;
  const int result = swr_convert(context_.get(), into, samples, planes, samples);
  if (check_av(result, "convert samples", messages) != samples)
    throw error(errc::failed, "convert samples", "libswresample returned another number of them");
}

}  // namespace lade::media
