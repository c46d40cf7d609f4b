// Loads videos with one line in a coroutine: read, decoded, converted.

#pragma once

#include <lade/media/av/clip.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::media {

struct load_video_options {
  time_window window = {};  // the frames that begin in it; default: all

  // Index of the video stream in its file; FFmpeg's choice if empty.
  std::optional<int> stream = {};

  // The conversion of frames to [height, width, channels] or [channels, height, width]; see
  // write_frame. If no size is set, it is that of the video. Members for image files have no
  // effect: `field`, `strict`, `fast` and `max_pixels`; `decoding` has the limit of pixels.
  image_options image = {};

  // If it tolerates damage, so does the demuxer.
  decode_options decoding = {};

  // The directory of the indexes of videos for later calls; see video_options.
  std::string_view index_directory = {};
};

// Frames of a video and their presentation times.
class loaded_video {
 public:
  loaded_video(tensor frames, std::vector<rational> times, std::uint64_t damaged)
      : frames_(std::move(frames)), times_(std::move(times)), damaged_(damaged) {}

  const tensor& frames() const noexcept { return frames_; }               // [frames, ...]
  const std::vector<rational>& times() const noexcept { return times_; }  // in seconds

  // How many times damage was tolerated.
  std::uint64_t damaged() const noexcept { return damaged_; }

 private:
  tensor frames_;
  std::vector<rational> times_;
  std::uint64_t damaged_;
};

// Reads a path, or a URL whose store is mounted. Decodes the frames of a window of its best video
// stream into one tensor, in memory of the caller's pool.
//
//   auto video = co_await lade::media::load_video("cat.mp4", {.window = {.begin = 2, .end = 3}});
//
// Only the packets that the window needs are read, if the file has an index of them (MP4,
// QuickTime) or an index is saved. Decodes on the CPU pool. Strings of the options are copied.
// Requires a runtime. Throws error(stopped) between two frames if the caller is cancelled,
// error(invalid_data) if the window has no frames, and as video and write_frame do.
task<loaded_video> load_video(std::string path, const load_video_options& options = {});

// Reads a path or URL and decodes a clip, as decode_clip(options).read(...) does. Requires a
// runtime. Throws as these do, and at once for invalid options.
task<tensor> load_clip(std::string path, const clip_options& options, random draw = {});

}  // namespace lade::media
