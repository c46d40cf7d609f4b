// Clips: frames of a video as one tensor, for batches.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/packet_index.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/video.hpp>
#include <lade/media/image.hpp>
#include <lade/random.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace lade::media {

// The position of a clip in its video.
enum class clip_position : std::uint8_t {
  random,      // anywhere that it fits: for training
  random_key,  // the same, at a frame where decoding can start: faster, less varied
  centre,      // in the middle: for validation
  first,       // at the first frame
  spread,      // frames at the middles of equal parts of the whole video
  spaced,      // several clips at equal distances, from the first frame to the last that fits
};

// The replacement of frames of a clip beyond the end of its video.
enum class clip_end : std::uint8_t {
  repeat_last,  // the last frame
  loop,         // the frames from the clip's first one on
  shorten,      // nothing: the clip has fewer frames
  refuse,       // nothing: error(invalid_data)
};

// Dimensions: frames (t), height, width, channels. Several clips have one more dimension, the
// first.
enum class clip_layout : std::uint8_t { thwc, tchw, cthw };

// The choice of the frames of a clip.
struct clip_sampling {
  int frames = 16;  // of a clip; 1 to 65,536
  int clips = 1;    // of a video; 1 to 1,024; several only at `random`, `random_key` or `spaced`

  clip_position position = clip_position::random;

  // Start time of the clip in seconds; replaces the position. The clip starts at the frame that is
  // shown at that time, or at the first frame if that is later.
  std::optional<rational> start = {};

  // Frames per second, 0.001 to 1000. Frame i of a clip is the one that is shown i / fps seconds
  // after its first frame begins: the last frame that begins at or before that time. 0: every
  // `stride`-th frame, 1 to 65,536. With fps, `stride` must be 1. `spread` uses neither. Write 8,
  // rational(30000, 1001) or rational::nearest(29.97).
  //
  // Times are compared exactly. Some containers round times, such as Matroska to milliseconds. If
  // all times of a video agree with its stated frame rate, to one unit of its time base, n frames
  // take n / rate seconds. So MP4 and Matroska files of one video have equal clips. In other
  // videos, n frames that agree with the rate take n / rate seconds only if that is a time of the
  // clip.
  rational fps = 0;
  int stride = 1;

  clip_end end = clip_end::repeat_last;
};

// Returns the numbers of the frames of a video's clips, clip by clip. `draw` determines the start
// of random clips, and is advanced. Any thread. Throws error(invalid_argument) for an invalid
// option. Throws error(invalid_data) for a start after the last frame, for a video without frames,
// and if clip_end::refuse applies.
std::vector<std::int64_t> sample_clip(const packet_index& of, const clip_sampling& how,
                                      random& draw);

// Returns the numbers of the frames of one clip that begins at frame `first`. `position` and
// `start` are not used. Throws as above, and error(invalid_argument) if there is no such frame.
std::vector<std::int64_t> clip_from(const packet_index& of, const clip_sampling& how,
                                    std::int64_t first);

struct clip_options {
  // The field of a sample that is decoded; its data if empty. Also the name of the tensor in a
  // batch.
  std::string_view field = {};

  clip_sampling sampling = {};

  // A field of each sample with the start time of its clip in seconds, a number. If set,
  // sampling.start and sampling.position are not used.
  std::string_view start_field = {};

  // Index of the video stream in its file; FFmpeg's choice if empty.
  std::optional<int> stream = {};

  // Size and fit of the frames, as in decode_image. All frames of a clip have the same crop.
  int width = 0;
  int height = 0;
  image_fit fit = image_fit::stretch;
  int shorter_side = 0;
  double min_area = 0.08;
  double max_area = 1;
  double min_aspect = 3.0 / 4;
  double max_aspect = 4.0 / 3;
  double flip = 0.5;
  image_colour colour = image_colour::rgb;
  clip_layout layout = clip_layout::thwc;
  element_type type = element_type::u8;  // or f16, bf16, f32
  std::array<float, 3> mean{0, 0, 0};
  std::array<float, 3> stddev{1, 1, 1};
  bool orient = true;          // turns frames as their stream states
  bool square_pixels = false;  // crops have the displayed proportions

  // The decoder of the video. If it tolerates damage, so does the demuxer. Strings are copied.
  decode_options decoding = {};

  // For read and load_clip: the directory of indexes for later epochs; see video_options.
  std::string_view index_directory = {};
};

// Decodes clips of videos in memory into tensors of one spec. A function for map and a writer for
// batch_into, like decode_image for images:
//
//   ... | lade::map(lade::io::read)
//       | lade::batch_into(lade::media::decode_clip({.width = 224, .height = 224}), {.size = 8})
//
// The best video stream of the file is decoded, only as far as the clip needs it. Frames are
// resized, converted and written to the slot as they are decoded. Small, copyable, any thread.
class decode_clip {
 public:
  // Throws error(invalid_argument) naming an invalid option, and error(unsupported) for a decoder
  // that FFmpeg does not have. Width and height are required.
  explicit decode_clip(const clip_options& options = {});

  std::string_view field() const noexcept { return options_.field; }

  // The spec of the tensor of a video: u8 [16, 224, 224, 3], f32 [3, 16, 224, 224]; of two clips u8
  // [2, 16, 224, 224, 3]. With clip_end::shorten, the number of frames is 0: it depends on the
  // video, so there are no slots.
  const tensor_spec& spec() const noexcept { return spec_; }

  bool is_random() const noexcept;

  // Number of damaged packets and frames that this object and its copies tolerated; see
  // damage_policy.
  std::uint64_t damaged() const noexcept { return damaged_->load(std::memory_order_relaxed); }

  // Decodes the sample's data, or its field, into `slot`, a contiguous tensor of that spec. Throws
  // errors that name the sample: invalid_data for damage, files without video and a start_field
  // that is not a time; unsupported for formats; invalid_argument for another slot or a sample that
  // has not been read; stopped between two frames if the calling stage is cancelled.
  void operator()(const sample& in, const tensor& slot, random draw = {}) const;

  // The same into a new tensor, in memory of the run; outside of a stage, in newly allocated
  // memory.
  tensor operator()(const sample& in, random draw = {}) const;

  // Reads and decodes a clip of the video of a reader: a file, an object in a store, a member of an
  // archive. Reads the same bytes as video::open and video::fetch. Decodes on the CPU pool if there
  // is a runtime. Throws as the reader does, the errors above naming the reader, and error(stopped)
  // between two frames if the caller is cancelled. Throws error(invalid_argument) if start_field is
  // set, because a reader has no fields.
  task<tensor> read(std::shared_ptr<const byte_reader> from, random draw = {}) const;

  // The steps of a call, for programs that decode some videos elsewhere:
  // - `opening`: the options that open a video. Their strings live as long as this object.
  // - `numbers_for`: the frames of its clips. `in` has the start_field, and may be null without
  //   one. Advances `draw`.
  // - `spec_of`: the spec of these clips.
  // - `write_clip`: decodes them into a slot of that spec, with `draw` as numbers_for() left it.
  //
  // They throw as the calls do.
  video_options opening() const;
  std::vector<std::int64_t> numbers_for(const packet_index& of, const sample* in,
                                        random& draw) const;
  tensor_spec spec_of(std::span<const std::int64_t> numbers) const;
  void write_clip(const video& from, std::span<const std::int64_t> numbers, const tensor& slot,
                  random draw, const std::stop_token& stop) const;

  // For stages, which reserve memory before a call: the bytes that decoding needs besides the slot,
  // and together with the tensor. The size of pictures is not known in advance. They count as
  // twelve pictures of 1280 x 720 in YUV 4:2:0, or of decoding.max_pixels if that is less. Packets
  // count as the bytes of the file; those of MP4 do not count, because they are read one by one.
  std::size_t memory_to_write(const sample& in) const;
  std::size_t memory_needed(const sample& in) const;

 private:
  struct texts;

  static task<tensor> read_clip(decode_clip decode, std::shared_ptr<const byte_reader> from,
                                random draw);

  std::shared_ptr<const texts> texts_;  // the strings of options_
  clip_options options_;
  image_options image_;
  tensor_spec spec_;
  std::shared_ptr<std::atomic<std::uint64_t>> damaged_;
};

}  // namespace lade::media
