// Clips: some frames of a video as one tensor, for batches.

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

// Where a clip starts in its video.
enum class clip_position : std::uint8_t {
  random,      // anywhere, so that it fits: for training
  random_key,  // the same, at a frame where decoding can start: faster, less varied
  centre,      // in the middle: for validation
  first,       // at the first frame
  spread,      // its frames are the middles of equal parts of the whole video
  spaced,      // several clips at equal distances: from the first frame to the last place that fits
};

// What stands for the frames of a clip that is longer than its video.
enum class clip_end : std::uint8_t {
  repeat_last,  // the last frame
  loop,         // the frames from the clip's first one on
  shorten,      // nothing: the clip has fewer frames
  refuse,       // nothing: error(invalid_data)
};

// Dimensions: frames (t), height, width, channels. Several clips have one more dimension in front.
enum class clip_layout : std::uint8_t { thwc, tchw, cthw };

// Which frames of a video are a clip.
struct clip_sampling {
  int frames = 16;  // of a clip; 1 to 65,536
  int clips = 1;    // of a video; 1 to 1,024; several only at `random`, `random_key` or `spaced`

  clip_position position = clip_position::random;

  // Time at which the clip starts, in seconds, instead of a position: at the frame that is shown
  // then, or the first one if that is later.
  std::optional<rational> start = {};

  // Frames per second, 0.001 to 1000. Frame i of a clip is the one that is shown i / fps seconds
  // after its first frame begins: the last one that begins then or before. If 0, every `stride`-th
  // frame. Unused by `spread`. Write 8, rational(30000, 1001) or rational::nearest(29.97).
  //
  // Times are compared exactly. Some containers have to round them, such as Matroska to
  // milliseconds. If all times of a video agree to one unit of its time base with the frame rate
  // that it states, n frames take n / rate seconds: MP4 and Matroska files of one video have equal
  // clips. In other videos, n frames that agree with the rate do so if that is a time of the clip.
  rational fps = 0;
  int stride = 1;

  clip_end end = clip_end::repeat_last;
};

// The numbers of the frames of a video's clips, clip by clip. `draw` decides where random clips
// start; it is advanced. Any thread. Throws error(invalid_argument) for an option that cannot work,
// error(invalid_data) for a start behind the last frame, a video without frames, and if
// clip_end::refuse says so.
std::vector<std::int64_t> sample_clip(const packet_index& of, const clip_sampling& how,
                                      random& draw);

// The numbers of the frames of one clip whose first frame is known. The clip's position and start
// are not used. Throws as above, and error(invalid_argument) if there is no such frame.
std::vector<std::int64_t> clip_from(const packet_index& of, const clip_sampling& how,
                                    std::int64_t first);

struct clip_options {
  // The field of a sample that is decoded; its data if empty. Gives the tensor of a batch its name.
  std::string_view field = {};

  clip_sampling sampling = {};

  // A field of the samples with the time at which the clip of each starts, in seconds: a number. If
  // it is given, neither sampling.start nor sampling.position is used.
  std::string_view start_field = {};

  // Index of the video stream in its file; FFmpeg's choice if empty.
  std::optional<int> stream = {};

  // The frames, as decode_image has it. All frames of a clip are cropped alike.
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
  bool orient = true;          // turns frames as their stream says
  bool square_pixels = false;  // crops have their proportions as they are shown

  // How the video is decoded. If damage is tolerated, that of the container is, too. Texts are
  // copied.
  decode_options decoding = {};

  // Of read and load_clip: where indexes of videos are kept for later epochs; see video_options.
  std::string_view index_directory = {};
};

// Decodes clips of videos in memory into tensors of one kind: a function for map and a writer for
// batch_into, as decode_image is for images.
//
//   ... | lade::map(lade::io::read)
//       | lade::batch_into(lade::media::decode_clip({.width = 224, .height = 224}), {.size = 8})
//
// The best video stream of the file is decoded, only as far as the clip needs it; frames are
// resized, converted and written to the slot as they are decoded. Small, copyable, any thread.
class decode_clip {
 public:
  // Throws error(invalid_argument) naming an option that cannot work, error(unsupported) for a
  // decoder that FFmpeg does not have. Width and height must be given.
  explicit decode_clip(const clip_options& options = {});

  std::string_view field() const noexcept { return options_.field; }

  // What one video becomes: u8 [16, 224, 224, 3], f32 [3, 16, 224, 224], or of two clips u8
  // [2, 16, 224, 224, 3]. With clip_end::shorten, the number of frames is 0: it depends on the
  // video, and there is no slot for it.
  const tensor_spec& spec() const noexcept { return spec_; }

  bool is_random() const noexcept;

  // How many packets and frames this object and its copies have tolerated as damaged; see
  // damage_policy.
  std::uint64_t damaged() const noexcept { return damaged_->load(std::memory_order_relaxed); }

  // Decodes the sample's data, or its field, into `slot`, a contiguous tensor of that spec. Throws
  // errors that name the sample: invalid_data for damage, files without video and a start_field
  // that is no time, unsupported for formats, invalid_argument for another slot or a sample that
  // has not been read, stopped between two frames if the stage that calls is stopped.
  void operator()(const sample& in, const tensor& slot, random draw = {}) const;

  // The same into a tensor of the run's memory; into fresh memory outside of a stage.
  tensor operator()(const sample& in, random draw = {}) const;

  // Reads and decodes a clip of the video that a reader has: a file, an object in a store, a member
  // of an archive. Reads what video::open and video::fetch read; decodes on the CPU pool if there
  // is a runtime. Throws what the reader throws, and the errors above, which name the reader;
  // error(stopped) between two frames if the caller is cancelled.
  task<tensor> read(std::shared_ptr<const byte_reader> from, random draw = {}) const;

  // The parts of a call, for those who decode elsewhere what they can, and the rest here:
  // - how a video is opened; its texts live as long as this object
  // - the frames of its clips. `in` has the start_field, and may be null without one. Advances
  // `draw`
  // - what they become
  // - their decoding, with `draw` as numbers_for() left it, into a slot of that spec
  // They throw what the calls throw.
  video_options opening() const;
  std::vector<std::int64_t> numbers_for(const packet_index& of, const sample* in,
                                        random& draw) const;
  tensor_spec spec_of(std::span<const std::int64_t> numbers) const;
  void write_clip(const video& from, std::span<const std::int64_t> numbers, const tensor& slot,
                  random draw, const std::stop_token& stop) const;

  // For stages, which reserve memory before a call: what decoding takes besides the slot, and
  // together with the tensor. The size of the pictures is not known before: they count as twelve of
  // 1280 x 720 in YUV 4:2:0, or of decoding.max_pixels if that is less. Packets count as the bytes
  // of the file, but not those of MP4, which are taken one after the other.
  std::size_t memory_to_write(const sample& in) const;
  std::size_t memory_needed(const sample& in) const;

 private:
  struct texts;

  static task<tensor> read_clip(decode_clip decode, std::shared_ptr<const byte_reader> from,
                                random draw);

  std::shared_ptr<const texts> texts_;  // what options_ refers to
  clip_options options_;
  image_options image_;
  tensor_spec spec_;
  std::shared_ptr<std::atomic<std::uint64_t>> damaged_;
};

}  // namespace lade::media
