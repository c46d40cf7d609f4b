// Videos by one line in a coroutine: read, decoded, converted.

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
  time_window window = {};  // the frames that begin in it; all if not given

  // Index of the video stream in its file; FFmpeg's choice if empty.
  std::optional<int> stream = {};

  // How frames become [height, width, channels] or [channels, height, width]; see write_frame. The
  // size is that of the video if none is given. What is about files of images has no meaning:
  // `field`, `strict`, `fast` and `max_pixels`; the limit of pixels is that of `decoding`.
  image_options image = {};

  // If damage is tolerated, that of the container is, too.
  decode_options decoding = {};

  // Where the indexes of videos are kept for later calls; see video_options.
  std::string_view index_directory = {};
};

// Frames of a video, and when they are shown.
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

// Reads a path, or a URL whose store is mounted, and decodes the frames of a window of its best
// video stream into one tensor, in memory of the caller's pool.
//
//   auto video = co_await lade::media::load_video("cat.mp4", {.window = {.begin = 2, .end = 3}});
//
// Only the packets that the window needs are read, where the file has an index of them (MP4,
// QuickTime) or one is kept. Decodes on the CPU pool. Texts of the options are copied. Requires a
// runtime. Throws error(stopped) between two frames if the caller is cancelled, error(invalid_data)
// if the window has no frames, and what video and write_frame throw.
task<loaded_video> load_video(std::string path, const load_video_options& options = {});

// Reads a path or URL and decodes a clip, as decode_clip(options).read(...) does. Requires a
// runtime. Throws what these throw, at once for options that cannot work.
task<tensor> load_clip(std::string path, const clip_options& options, random draw = {});

}  // namespace lade::media
