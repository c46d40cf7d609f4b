// Encoders: frames or tensors in, packets out.

#pragma once

#include <lade/media/av/frame.hpp>
#include <lade/media/av/packet.hpp>
#include <lade/media/av/rational.hpp>
#include <lade/media/av/resampler.hpp>
#include <lade/media/av/stream_info.hpp>
#include <lade/media/resize.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace lade::media {

struct video_encode_options {
  // FFmpeg's name of the encoder or of the codec: "libx264", "h264".
  std::string_view encoder = {};

  int width = 0;  // size of all pictures, in pixels
  int height = 0;

  // Frames per second. Tensors are frames at multiples of 1 / frame_rate.
  rational frame_rate = 0;

  // The unit of timestamps in seconds; 0: 1 / frame_rate. Frames of a variable rate need a finer
  // unit, such as that of the stream from which they were decoded. For tensors, 1 / frame_rate must
  // be a multiple of the unit; otherwise send() refuses the second tensor.
  rational time_base = 0;

  // FFmpeg's name. If empty: "yuv420p" if the encoder has it, otherwise the format that loses least
  // of RGB.
  std::string_view pixel_format = {};

  // Bits per second; 0: the encoder's default. Refused by encoders without a bit rate, such as
  // lossless ones, libwebp and prores.
  std::int64_t bit_rate = 0;

  // In the unit of the encoder; empty: its default. The encoder refuses numbers out of its range. A
  // quality beside a bit rate is refused, except by libvpx, libvpx-vp9 and libaom-av1, where it is
  // a limit.
  // - crf, lower is better: 0 to 51 of libx264 and libx265, 0 to 63 of libvpx-vp9 and libaom-av1,
  //   1 to 63 of libsvtav1, 4 to 63 of libvpx
  // - quantizer (FFmpeg's -q:v), lower is better: 2 to 31 of MPEG-1, 2 and 4, libxvid, MJPEG,
  //   H.263, Flash video and Windows Media Video
  // - quality, higher is better: 0 to 10 of libtheora, 0 to 100 of libwebp
  std::optional<double> quality = {};

  // Maximum number of frames from one key frame to the next: 1 if the encoder has only key frames,
  // at least 2 for libsvtav1. Refused by encoders that ignore it, such as gif.
  std::optional<int> gop = {};

  // Maximum number of consecutive B-frames, up to 16. Values above 0 are refused by encoders
  // without B-frames, and by libxvid, which loses frames with them.
  std::optional<int> b_frames = {};

  // The coding of colours, which the stream states. Fields that are empty, "unknown" or "reserved"
  // have defaults:
  // - matrix: "gbr" for RGB; "bt709" for a width of at least 1280 or a height above 576;
  //   otherwise "smpte170m" (BT.601)
  // - range: "pc" for RGB, grey, JPEG and formats such as "yuvj420p"; otherwise "tv"
  // - primaries, transfer: those of the matrix
  //
  // A codec with fixed colours, such as VP8 (BT.601, "tv"), uses these. The encoder refuses colours
  // that its streams cannot state. muxer::add() refuses colours that neither stream nor file
  // states.
  frame_colour colour = {};

  rational sample_aspect = 1;  // width / height of a pixel

  int threads = 1;  // number of encoding threads; 1: the calling thread

  // Further options of the encoder as "key=value:key=value"; a backslash before a colon makes it
  // part of a value. Refused by name:
  // - unknown options, also in x264-params and similar options if the library reports them
  // - options that duplicate a member ("g", "video_size")
  // - options that override a bit rate or quality that is set ("crf", "qp")
  // - options that open files, such as the statistics of two passes
  std::string_view options = {};

  // Dimensions of tensors: [height, width, channels], or chw: [channels, height, width].
  image_layout tensor_layout = image_layout::hwc;
};

// Encodes a video. libswscale converts pictures to the encoder's pixel format and colours, with
// exact rounding, and with chroma at the position of the format.
//
// Packets stay in memory until they are received, so calls may be in any order.
//
// One thread at a time. After an exception of FFmpeg, the encoder can only be destroyed. send()
// throws error(stopped) if the calling stage is cancelled.
class video_encoder {
 public:
  // Throws error(unsupported) if FFmpeg has no such encoder. Throws error(invalid_argument) naming
  // an option that the encoder does not have or cannot use, and FFmpeg's error if the encoder does
  // not open.
  explicit video_encoder(const video_encode_options& options);
  video_encoder(video_encoder&&) noexcept;
  video_encoder& operator=(video_encoder&&) noexcept;
  ~video_encoder();

  // The parameters of the encoded stream.
  const stream_info& stream() const noexcept;

  // Encodes a frame at its time. A frame without stated colours has those of the stream; for a
  // stream of RGB, the default matrix and range of its size. Matrix and range are converted;
  // primaries and transfer are not.
  //
  // Throws error(invalid_argument) for
  // - another size
  // - primaries or transfer that differ from the stream's (set `colour` to frame::colour());
  //   names with the same meaning, such as the transfers "bt709" and "smpte170m", are equal
  // - a frame without a time, at no multiple of the time base, or not after the previous frame
  // - any frame after finish()
  void send(const frame& next);

  // Encodes a picture, u8 [height, width, channels] or as `tensor_layout` states, or a batch of
  // pictures [n, ...]. The first is at 0; each other one is a frame after the last. Channels: 1 of
  // grey, 3 of RGB, or 4 of RGBA if the pixel format has alpha. Grey, like RGB, has the full range.
  // Rows and planes may have any stride; the pixels of a row must be contiguous. The results of the
  // two layouts may differ by one level where RGB becomes YUV. Throws as above, and
  // error(invalid_argument) for other tensors.
  void send(const tensor& pictures);

  // Ends the stream; receive() returns the packets that the encoder still holds. Throws
  // error(failed), with both numbers, if the encoder returned fewer packets than it received
  // frames. send() and finish() throw error(unsupported) for a picture with an empty packet,
  // because files lose such packets. libtheora returns them for pictures that repeat the previous
  // one.
  void finish();

  // Returns the next packet in decoding order; empty if the encoder needs another frame or has
  // finished.
  std::optional<packet> receive();

 private:
  class state;
  std::unique_ptr<state> state_;
};

struct audio_encode_options {
  // FFmpeg's name of the encoder or of the codec: "libopus", "aac", "pcm_s16le".
  std::string_view encoder = {};

  int sample_rate = 0;  // samples per second of each channel
  int channels = 0;

  // FFmpeg's name of the channels: "5.1(side)". If empty: FFmpeg's default for their number.
  std::string_view layout = {};

  // FFmpeg's name. If empty: floats if the encoder has them, otherwise 16 bits, otherwise its first
  // format.
  std::string_view sample_format = {};

  // Bits per second; 0: the encoder's default. Refused by encoders without a bit rate, such as
  // those of FLAC, ALAC, PCM and ADPCM.
  std::int64_t bit_rate = 0;

  // In the unit of the encoder (FFmpeg's -q:a); empty: its default. The encoder refuses numbers out
  // of its range, and any number beside a bit rate. Lower is better: 0 to 9.999 of libmp3lame.
  // Higher is better: -1 to 10 of libvorbis, 0.1 to 10 of aac.
  std::optional<double> quality = {};

  std::string_view options = {};  // as of video

  // Dimensions of tensors: [samples, channels], or planar: [channels, samples].
  audio_layout tensor_layout = audio_layout::interleaved;
};

// Encodes audio. libswresample converts samples to the encoder's sample format; they are cut into
// the lengths that the encoder requires. Rate and channels are not converted: others are refused.
//
// Otherwise as video_encoder.
class audio_encoder {
 public:
  explicit audio_encoder(const audio_encode_options& options);
  audio_encoder(audio_encoder&&) noexcept;
  audio_encoder& operator=(audio_encoder&&) noexcept;
  ~audio_encoder();

  const stream_info& stream() const noexcept;

  // Encodes a frame, which must begin at the end of the previous frame, within one unit of its time
  // base. Throws error(invalid_argument) for a gap, a step back in time, another sample rate or
  // other channels, and a frame without a time. Throws it also for any frame after finish().
  void send(const frame& next);

  // Encodes samples after the previous ones; the first is at 0. `samples`: f32 from -1 to 1, or
  // i16, [samples, channels] or as `tensor_layout` states, with any strides. Values out of range
  // are clipped if the sample format consists of integers.
  //
  // Throws error(invalid_argument) for other tensors, and naming the first float sample that is not
  // finite or beyond +-2^20 (MP3: +-256). Then nothing of the tensor is encoded. The same applies
  // to frames.
  void send(const tensor& samples);

  void finish();
  std::optional<packet> receive();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace lade::media
