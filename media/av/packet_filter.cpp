#include <lade/error.hpp>
#include <lade/media/av/packet.hpp>

#include "av_messages.hpp"
#include "stream_fields.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavcodec/bsf.h>
}

namespace lade::media {

static av_bsf_context open_filters(const packets& from, std::string_view filters,
                                   const std::string& doing) {
  const av_messages messages;
  AVBSFContext* made = nullptr;
  const int parsed = av_bsf_list_parse_str(std::string(filters).c_str(), &made);
  av_bsf_context context(made);
  if (parsed == AVERROR_BSF_NOT_FOUND || parsed == AVERROR_OPTION_NOT_FOUND ||
      parsed == AVERROR(EINVAL))
    throw error(errc::invalid_argument, doing,
                "FFmpeg has no such bitstream filter or option" + messages.addition());
  check_av(parsed, doing);
  check_av(avcodec_parameters_copy(context->par_in, &from.stream().parameters()), doing);
  context->time_base_in = av_rational_of(from.stream().time_base());
  check_av(av_bsf_init(context.get()), doing);
  return context;
}

// The stream with the filters' output parameters.
static stream_info filtered_stream(const stream_info& from, const AVBSFContext& by) {
  const auto& before = from.stored();
  auto fields = std::make_shared<stream_info::fields>();
  fields->file = before.file;
  fields->index = before.index;
  fields->parameters = copy_parameters(*by.par_out);
  fields->time_base = rational_of(by.time_base_out);
  fields->start_time = before.start_time;
  fields->duration = before.duration;
  fields->stated_frames = before.stated_frames;
  fields->frame_rate = before.frame_rate;
  fields->sample_aspect = before.sample_aspect;
  fields->orientation = before.orientation;
  fields->metadata = before.metadata;
  return stream_info(std::move(fields));
}

packets filter_packets(const packets& from, std::string_view filters) {
  const auto doing = fmt::format(R"(filter packets of {} by "{}")", from.stream().name(), filters);
  const auto by = open_filters(from, filters, doing);
  const av_messages messages;
  std::vector<packet> all;
  const auto receive_all = [&] {
    while (true) {
      av_packet next(check_av(av_packet_alloc()));
      const int result = av_bsf_receive_packet(by.get(), next.get());
      if (result == AVERROR(EAGAIN) || result == AVERROR_EOF) return;
      check_av(result, doing, messages);
      all.emplace_back(std::move(next));
    }
  };
  for (const auto& each : from) {
    const av_packet copy(check_av(av_packet_clone(&each.get())));
    check_av(av_bsf_send_packet(by.get(), copy.get()), doing, messages);
    receive_all();
  }
  check_av(av_bsf_send_packet(by.get(), nullptr), doing, messages);
  receive_all();
  packets result(filtered_stream(from.stream(), *by), std::move(all), from.window());
  result.attach(memory_charge(result.memory_bytes()));
  return result;
}

}  // namespace lade::media
