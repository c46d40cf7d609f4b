// The floor of video_bench: bare loops over libavcodec and swscale. Clips are decoded on one thread
// or on several, all else on one.

#include <string>
#include <vector>

#include <filesystem>
#include "bare_clip.hpp"
#include "media.hpp"

namespace {

struct settings {
  std::string file;
  std::string pick;
  std::string dump;
  std::size_t items;
  std::size_t threads;
};

bench::report decode(const settings& with) {
  std::size_t frames = 0;
  auto taken = bench::time_items(with.items, [&](std::size_t) {
    frames = 0;
    bench::decode_all(with.file, AVMEDIA_TYPE_VIDEO, [&](const AVFrame&) { ++frames; });
  });
  return bench::items_report("video_bare", with.items, frames, taken);
}

// A clip in memory that is used again.
class clip_in_memory {
 public:
  void decode(const settings& with, std::size_t number) {
    bench::bare_clip video(with.file);
    frames_ = 0;
    video.decode(bench::picked(with.pick, video.frames(), number),
                 [&](std::size_t i, const AVFrame& frame) {
                   scaler_.to_packed(frame, &pixels_[i * (pixels_.size() / bench::clip_frames)]);
                   ++frames_;
                 });
  }
  const std::uint8_t* data() const { return pixels_.data(); }
  std::size_t frames() const { return frames_; }

 private:
  std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(bench::clip_bytes);
  bench::bare_scaler scaler_;
  std::size_t frames_ = 0;
};

bench::report clips(const settings& with) {
  std::vector<clip_in_memory> clips(with.threads);
  auto decode = [&](std::size_t i, std::size_t thread) { clips[thread].decode(with, i); };
  auto taken = bench::time_items(with.items, with.threads, decode);
  if (!with.dump.empty()) decode(0, 0);
  bench::dump(with.dump, clips[0].data(), bench::clip_bytes);
  return bench::items_report("video_bare", with.items, clips[0].frames(), taken)
      .add("threads", with.threads);
}

bench::report convert(const settings& with) {
  std::vector<bench::av_frame> frames;
  bench::decode_all(with.file, AVMEDIA_TYPE_VIDEO, [&](const AVFrame& frame) {
    if (frames.size() < bench::clip_frames) frames.emplace_back(av_frame_clone(&frame));
  });
  std::vector<std::uint8_t> pixels(bench::clip_bytes);
  bench::bare_scaler scaler;
  auto taken = bench::time_items(with.items, [&](std::size_t i) {
    scaler.to_packed(*frames[i % frames.size()], pixels.data());
  });
  return bench::items_report("video_bare", with.items, 1, taken);
}

// All that is not the media data, and the packets of the clip.
bench::report needed(const settings& with) {
  bench::av_stream stream(with.file, AVMEDIA_TYPE_VIDEO);
  std::size_t bytes = std::filesystem::file_size(with.file);
  while (const AVPacket* packet = stream.next()) bytes -= static_cast<std::size_t>(packet->size);
  bench::bare_clip video(with.file);
  bytes += video.packet_bytes(bench::picked(with.pick, video.frames(), 0));
  bench::report line("video_bare");
  line.add("item_frames", bench::clip_frames).add("bytes", bytes);
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "The floor of video: libavcodec and swscale.");
  settings with;
  auto what = options.choice("what", "decode|clip|convert|needed",
                             "all frames of a file; 16 of them to 224x224 RGB; frames in memory "
                             "to 224x224 RGB; how many bytes of a file a clip needs");
  with.file = options.text("file", "build/media/h264-720p.mp4", "the video");
  with.pick = options.choice("pick", "even|contiguous", "which frames of the video a clip has");
  with.items = options.number("items", 1, "how many files, clips or frames");
  with.threads = options.number("threads", 1, "that decode clips");
  with.dump = options.text("dump", "", "file to write the first clip to");
  options.done();
  auto* run = what == "decode"    ? decode
              : what == "clip"    ? clips
              : what == "convert" ? convert
                                  : needed;
  run(with).add("what", what).print();
}
