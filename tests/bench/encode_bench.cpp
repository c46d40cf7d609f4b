// lade doing what encode_bare does, with the same options: tensors to H.264 on one thread.

#include <lade/media/av/convert.hpp>
#include <lade/media/av/encoder.hpp>
#include <lade/media/av/video.hpp>

#include "media.hpp"

namespace {

std::vector<lade::tensor> rgb_frames(const std::string& path, std::size_t count) {
  const lade::media::video video(bench::load<lade::buffer>(path), path);
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<std::int64_t>(i));
  std::vector<lade::tensor> frames;
  video.for_each_frame(numbers, [&](std::int64_t, const lade::media::frame& frame) {
    frames.push_back(lade::media::to_tensor(frame));
  });
  return frames;
}

std::size_t encode(const std::vector<lade::tensor>& frames, const std::string& preset) {
  lade::media::video_encoder encoder({.encoder = "libx264",
                                      .width = static_cast<int>(frames[0].shape()[1]),
                                      .height = static_cast<int>(frames[0].shape()[0]),
                                      .frame_rate = 30,
                                      .options = preset});
  std::size_t bytes = 0;
  auto receive_all = [&] {
    while (const auto packet = encoder.receive()) bytes += packet->data().size();
  };
  for (const auto& frame : frames) {
    encoder.send(frame);
    receive_all();
  }
  encoder.finish();
  receive_all();
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade: encoding tensors with libx264 on one thread.");
  auto file = options.text("file", "build/media/h264-720p.mp4", "the video with the frames");
  auto preset = options.text("preset", "medium", "of libx264");
  auto frames = options.number("frames", 30, "that are encoded to one video");
  auto items = options.number("items", 1, "how many videos are encoded");
  options.done();

  auto rgb = rgb_frames(file, frames);
  std::size_t bytes = 0;
  auto taken =
      bench::time_items(items, [&](std::size_t) { bytes = encode(rgb, "preset=" + preset); });
  bench::items_report("encode_bench", items, rgb.size(), taken)
      .add("preset", preset)
      .add("bytes", bytes)
      .print();
}
