// Files of all recipes, and their packets as FFmpeg's own loop reads them.

#pragma once

#include <lade/media/av/demuxer.hpp>
#include <lade/task.hpp>

#include "media_files.hpp"

#include <functional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

struct demuxed_file {
  media_recipe recipe;
  const char* input;

  std::string path() const { return media_files::path(recipe, input); }
  friend std::ostream& operator<<(std::ostream& out, const demuxed_file& of) {
    return out << of.recipe;
  }
};

inline const std::string both_inputs = std::string(moving) + " " + sounding;

inline demuxed_file video_and_audio() {
  return {{"both.mp4",
           "-map 0:v -map 1:a -c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p -c:a aac "
           "-metadata title=both -metadata:s:a language=deu"},
          both_inputs.c_str()};
}

inline std::vector<demuxed_file> all_files() {
  std::vector<demuxed_file> all;
  for (const auto& each : video_recipes()) all.push_back({each, moving});
  for (const auto& each : audio_recipes()) all.push_back({each, sounding});
  all.push_back(video_and_audio());
  return all;
}

// What is compared of a packet.
inline std::string record_of(const AVPacket& of) {
  std::ostringstream text;
  text << of.stream_index << " pts " << of.pts << " dts " << of.dts << " flags " << of.flags
       << " bytes " << of.size << " "
       << std::hash<std::string_view>()(
              {reinterpret_cast<const char*>(of.data), static_cast<std::size_t>(of.size)});
  return text.str();
}

// The packets of FFmpeg's own loop over the file.
inline std::vector<std::string> records_of_ffmpeg(const demuxed_file& file) {
  AVFormatContext* context = nullptr;
  check_av(avformat_open_input(&context, file.path().c_str(), nullptr, nullptr), "open");
  const bool known = std::string_view(context->iformat->name) != "mpegts" &&
                     std::string_view(context->iformat->name) != "avi" &&
                     std::string_view(context->iformat->name) != "mp3";
  if (std::string_view(context->iformat->name) == "wav") context->max_probe_packets = 0;
  if (!known) check_av(avformat_find_stream_info(context, nullptr), "probe");
  std::vector<std::string> records;
  const av_packet next(av_packet_alloc());
  while (av_read_frame(context, next.get()) >= 0) {
    records.push_back(record_of(*next));
    av_packet_unref(next.get());
  }
  avformat_close_input(&context);
  return records;
}

inline std::vector<int> all_streams(const demuxer& of) {
  std::vector<int> indices;
  for (const auto& each : of.streams()) indices.push_back(each.index());
  return indices;
}

inline task<std::vector<packets>> collect_packets(demuxer& from, std::vector<int> streams,
                                                  packet_stream_options options) {
  std::vector<packets> all;
  auto elements = from.stream(std::move(streams), options);
  while (auto* next = co_await elements.next()) all.push_back(*next);
  co_return all;
}

inline std::vector<std::string> records_of(const std::vector<packets>& elements) {
  std::vector<std::string> records;
  for (const auto& element : elements)
    for (const auto& each : element) records.push_back(record_of(each.get()));
  return records;
}

}  // namespace lade::media
