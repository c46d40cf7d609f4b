// The description of a stream in a media file.

#pragma once

#include <lade/media/av.hpp>
#include <lade/media/av/rational.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::media {

enum class stream_kind : std::uint8_t { video, audio, subtitle, data, attachment };

std::string_view name(stream_kind kind) noexcept;  // "video", "audio", ...

// Keys and values in the file: "language" and "eng".
using metadata = std::vector<std::pair<std::string, std::string>>;

// The orientation in which a video is displayed: the stored picture is mirrored left to right if
// `mirrored`, then turned clockwise.
struct display_orientation {
  int degrees = 0;  // 0, 90, 180, 270
  bool mirrored = false;

  friend bool operator==(const display_orientation&, const display_orientation&) = default;
};

// The parameters of one stream that a decoder needs, and the statements of the container. A
// container may be wrong: numbers of frames, durations and rates are not verified.
//
// Immutable. Copies share. Any thread.
class stream_info {
 public:
  struct fields;  // media/av/stream_fields.hpp

  explicit stream_info(std::shared_ptr<const fields> of) noexcept : fields_(std::move(of)) {}

  // A stream of frames without a file, such as the output of a filter.
  static stream_info of_frames(std::string name, stream_kind kind, rational time_base);

  // The name of the stream in errors: "clip.mp4, stream 0 (h264)".
  std::string name() const;

  int index() const noexcept;  // index in its file, from 0
  stream_kind kind() const noexcept;
  std::string_view codec() const noexcept;  // FFmpeg's name: "h264", "aac"; empty if unknown

  // The unit of the stream's timestamps, in seconds.
  rational time_base() const noexcept;

  // Time of the first frame, and duration, in seconds. Empty if the file does not state them, as in
  // MP3 without a Xing header and AAC in ADTS.
  std::optional<rational> start_time() const noexcept;
  std::optional<rational> duration() const noexcept;

  // The number of frames that the container states; empty if it states none.
  std::optional<std::int64_t> stated_frames() const noexcept;

  std::int64_t bit_rate() const noexcept;  // bits per second; 0 if unknown
  const media::metadata& metadata() const noexcept;

  // Video. Sizes of stored pictures, in pixels; 0 if unknown before decoding.
  int width() const noexcept;
  int height() const noexcept;
  std::optional<rational> frame_rate() const noexcept;  // mean frames per second
  rational sample_aspect() const noexcept;              // width / height of a pixel; 1 if unknown
  display_orientation orientation() const noexcept;

  // Audio; 0 if unknown before decoding.
  int sample_rate() const noexcept;  // samples per second of each channel
  int channels() const noexcept;

  // FFmpeg's parameters, owned by this object and its copies.
  const AVCodecParameters& parameters() const noexcept;

  const fields& stored() const noexcept { return *fields_; }

 private:
  friend bool has_headers_apart(const stream_info& stream) noexcept;

  std::shared_ptr<const fields> fields_;
};

}  // namespace lade::media
