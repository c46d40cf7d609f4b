// Mirrors a video, and keeps its sound as it is: reencode FROM TO
// Memory does not grow with the length of the file.

#include <lade/lade.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/encoder.hpp>
#include <lade/media/av/muxer.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace av = lade::media;

// The rows of a picture in the reverse order.
static void turn_rows_around(const lade::tensor& plane, std::int64_t row_bytes) {
  const auto last = plane.shape()[0] - 1;
  for (std::int64_t y = 0; y < last - y; ++y)
    std::swap_ranges(plane[y].bytes(), plane[y].bytes() + row_bytes, plane[last - y].bytes());
}

// Each row with its pixels in the reverse order.
static void turn_columns_around(const lade::tensor& plane, std::int64_t row_bytes,
                                std::int64_t bytes) {
  for (std::int64_t y = 0; y < plane.shape()[0]; ++y) {
    auto* left = plane[y].bytes();
    for (auto* right = left + row_bytes; left < right - bytes; left += bytes)
      std::swap_ranges(left, left + bytes, right -= bytes);
  }
}

// The frame as in a mirror. If it is to be turned on its side, its rows become columns then.
static av::frame mirrored(const av::frame& from) {
  const bool on_its_side = from.stream().orientation().degrees % 180 != 0;
  auto copy = from.clone();
  for (int i = 0; i < copy.planes(); ++i) {
    const auto plane = copy.plane(i);
    const auto bytes = std::int64_t(lade::element_bytes(plane.type())) * plane.strides()[1];
    const auto row_bytes = plane.shape()[1] * bytes;
    if (on_its_side)
      turn_rows_around(plane, row_bytes);
    else
      turn_columns_around(plane, row_bytes, bytes);
  }
  return copy;
}

static lade::task<std::optional<av::frame>> first_frame(std::string from) {
  auto source = co_await av::demuxer::open(from);
  const auto& video = source.best(av::stream_kind::video);
  av::decoder decoder(video);
  auto chunks = source.stream(video.index(), {.packets = 1});
  while (auto* chunk = co_await chunks.next()) {
    decoder.send((*chunk)[0]);
    if (auto first = decoder.receive()) co_return first;
  }
  decoder.finish();
  co_return decoder.receive();
}

// The colours that a video states, for one that is YUV.
static av::frame_colour colour_of(const std::optional<av::frame>& first) {
  auto colour = first ? first->colour() : av::frame_colour();
  if (colour.matrix == "gbr") colour.matrix = colour.range = {};
  return colour;
}

// Decodes and encodes the packets of a video.
class reencoder {
 public:
  reencoder(const av::stream_info& from, const av::frame_colour& colour)
      : decoder_(from),
        encoder_({.encoder = "libx264",
                  .width = from.width(),
                  .height = from.height(),
                  .frame_rate = from.frame_rate().value_or(25),
                  .time_base = from.time_base(),
                  .quality = 20,
                  .colour = colour,
                  .sample_aspect = from.sample_aspect()}) {}

  const av::stream_info& stream() const { return encoder_.stream(); }

  void reencode(const av::packets& from, av::muxer& to, int stream) {
    for (const auto& each : from) {
      decoder_.send(each);
      encode(to, stream);
    }
  }

  void finish(av::muxer& to, int stream) {
    decoder_.finish();
    encode(to, stream);
    encoder_.finish();
    to.write_ready(stream, encoder_);
    std::printf("%d frames\n", frames_);
  }

 private:
  void encode(av::muxer& to, int stream) {
    for (; auto next = decoder_.receive(); ++frames_) {
      if (!next->pts())  // as in AVI with B-frames
        throw lade::error(lade::errc::unsupported, "reencode " + next->stream().name(),
                          "the file does not state when its frames are shown");
      encoder_.send(mirrored(*next));
    }
    to.write_ready(stream, encoder_);
  }

  av::decoder decoder_;
  av::video_encoder encoder_;
  int frames_ = 0;
};

static lade::task<> reencode(std::string from, std::string to) {
  auto source = co_await av::demuxer::open(from);
  const auto& video = source.best(av::stream_kind::video);
  const auto* audio = source.find_best(av::stream_kind::audio);
  const auto first = co_await first_frame(from);
  reencoder pictures(video, colour_of(first));
  av::muxer target(to);
  target.set_metadata(source.metadata());
  const int video_out = target.add(pictures.stream());
  target.set_orientation(video_out, video.orientation());
  const int audio_out = audio ? target.add(*audio) : -1;
  std::vector<int> streams{video.index()};
  if (audio) streams.push_back(audio->index());
  auto chunks = source.stream(streams, {.packets = 32});
  while (auto* chunk = co_await chunks.next()) {
    if (chunk->stream().index() == video.index())
      pictures.reencode(*chunk, target, video_out);
    else
      for (const auto& each : *chunk) target.write(audio_out, each);
  }
  pictures.finish(target, video_out);
  target.finish();
}

int main(int argc, char** argv) try {
  if (argc != 3) return std::puts("usage: reencode FROM TO"), 2;
  lade::runtime runtime;
  lade::sync_wait(runtime, reencode(argv[1], argv[2]));
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
