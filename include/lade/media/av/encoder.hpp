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

  int width = 0;  // of all pictures, in pixels
  int height = 0;

  // Frames per second. Tensors are shown at its multiples.
  rational frame_rate = 0;

  // The unit of timestamps in seconds; 1 / frame_rate if 0. Frames of a variable rate need a finer
  // one, such as that of the stream that they were decoded from. For tensors, 1 / frame_rate must
  // be a multiple of it: else send() refuses the second one.
  rational time_base = 0;

  // FFmpeg's name. If empty, "yuv420p" where the encoder has it, else what loses least of RGB.
  std::string_view pixel_format = {};

  // Bits per second; the encoder's default if 0. Refused by encoders that do not have one, such as
  // those without loss, libwebp and prores.
  std::int64_t bit_rate = 0;

  // In the unit of the encoder, which refuses numbers outside of its range and has a default. It is
  // refused beside a bit rate, except by libvpx, libvpx-vp9 and libaom-av1, where that is a limit.
  // - crf, the lower the better: 0 to 51 of libx264 and libx265, 0 to 63 of libvpx-vp9 and
  //   libaom-av1, 1 to 63 of libsvtav1, 4 to 63 of libvpx
  // - quantizer (FFmpeg's -q:v), the lower the better: 2 to 31 of MPEG-1, 2 and 4, libxvid, MJPEG,
  //   H.263, Flash video and Windows Media Video
  // - quality, the higher the better: 0 to 10 of libtheora, 0 to 100 of libwebp
  std::optional<double> quality = {};

  // The most frames from one key frame to the next: 1 if the encoder has key frames only, at least
  // 2 of libsvtav1. Refused by encoders that ignore it, such as gif.
  std::optional<int> gop = {};

  // The most consecutive B-frames, up to 16. Refused if above 0 by encoders that have none, and by
  // libxvid, which loses frames with them.
  std::optional<int> b_frames = {};

  // How the colours of the stream are coded, and stated in it. Fields that are empty, "unknown"
  // or "reserved" become:
  // - matrix: "gbr" for RGB, else "bt709" for a width of at least 1280 or a height above 576, and
  //   "smpte170m" (BT.601) below
  // - range: "pc" for RGB, grey, JPEG and formats such as "yuvj420p", else "tv"
  // - primaries, transfer: those of the matrix
  // A codec whose streams have other colours, such as VP8 (BT.601, "tv"), has those; the encoder
  // refuses what its streams cannot state. muxer::add() refuses what neither stream nor file
  // states.
  frame_colour colour = {};

  rational sample_aspect = 1;  // width / height of a pixel

  int threads = 1;  // that encode; with 1, the calling one

  // Further options of the encoder as "key=value:key=value"; a backslash before a colon makes it
  // part of a value. Refused by name are unknown ones, also those in x264-params and the like that
  // the library reports; those that state what a member states ("g", "video_size"); those that
  // override a bit rate or quality that is given ("crf", "qp"); and those that open files, such as
  // the statistics of two passes.
  std::string_view options = {};

  // Of tensors: [height, width, channels], or chw: [channels, height, width].
  image_layout tensor_layout = image_layout::hwc;
};

// Encodes a video. Pictures are converted to the encoder's pixel format and colour by libswscale
// with exact rounding, and chroma at the place that the format has for it.
//
// Packets wait in memory until they are received, so that the calls may come in any order.
//
// One thread at a time. After an exception of FFmpeg, only destruction is left. send() throws
// error(stopped) if the stage that calls is being stopped.
class video_encoder {
 public:
  // Throws error(unsupported) if FFmpeg has no such encoder, error(invalid_argument) naming an
  // option that the encoder does not have or cannot use, FFmpeg's error if it does not open.
  explicit video_encoder(const video_encode_options& options);
  video_encoder(video_encoder&&) noexcept;
  video_encoder& operator=(video_encoder&&) noexcept;
  ~video_encoder();

  // The parameters of the stream of packets.
  const stream_info& stream() const noexcept;

  // Encodes a frame at its time. A frame whose colours are not stated has those of the
  // stream; for a stream of RGB, the default matrix and range of its size. Matrix and range are
  // converted; primaries and transfer are not.
  // Throws error(invalid_argument) for another size, primaries or transfer that are stated and not
  // those of the stream (set `colour` to frame::colour()), a frame without a time, at no multiple
  // of the time base, or not after the one before, and for any frame after finish(). Names that
  // mean the same, such as the transfers "bt709" and "smpte170m", are equal.
  void send(const frame& next);

  // Encodes a picture, u8 [height, width, channels] or as `tensor_layout` says, or a batch of them
  // [n, ...], one frame after the last one; the first at 0. Channels: 1 of grey, 3 of RGB, or 4 of
  // RGBA if the pixel format has alpha. Grey, as RGB, is of the full range.
  // Rows and planes may have any stride, the pixels of a row must be contiguous. The two layouts
  // may differ by one level where RGB becomes YUV.
  // Throws as above, and error(invalid_argument) for other tensors.
  void send(const tensor& pictures);

  // Ends the stream; receive() returns the packets that the encoder still holds. Throws
  // error(failed), with both numbers, if the encoder made fewer packets than it was sent frames.
  // send() and finish() throw error(unsupported) for a picture whose packet is empty, as libtheora
  // has for pictures that repeat the one before: files lose such packets.
  void finish();

  // The next packet in decoding order; empty if the encoder needs another frame or has finished.
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

  // FFmpeg's name of the channels: "5.1(side)". Its default for their number if empty.
  std::string_view layout = {};

  // FFmpeg's name. If empty, floats where the encoder has them, else 16 bits, else its first.
  std::string_view sample_format = {};

  // Bits per second; the encoder's default if 0. Refused by encoders that do not have one, such as
  // those of FLAC, ALAC, PCM and ADPCM.
  std::int64_t bit_rate = 0;

  // In the unit of the encoder (FFmpeg's -q:a), which refuses numbers outside of its range, or
  // beside a bit rate, and has a default: 0 to 9.999 of libmp3lame, the lower the better; -1 to 10
  // of libvorbis and 0.1 to 10 of aac, the higher the better.
  std::optional<double> quality = {};

  std::string_view options = {};  // as of video

  // Of tensors: [samples, channels], or planar: [channels, samples].
  audio_layout tensor_layout = audio_layout::interleaved;
};

// Encodes audio. Samples are converted to the encoder's sample format by libswresample, and cut to
// the lengths that it takes. Rate and channels are not converted: what differs is refused.
//
// As a video_encoder otherwise.
class audio_encoder {
 public:
  explicit audio_encoder(const audio_encode_options& options);
  audio_encoder(audio_encoder&&) noexcept;
  audio_encoder& operator=(audio_encoder&&) noexcept;
  ~audio_encoder();

  const stream_info& stream() const noexcept;

  // Encodes a frame, which must begin where the one before ended, to within a unit of its time
  // base. Throws error(invalid_argument) for a gap, a step back in time, another sample rate or
  // other channels, a frame without a time, and for any frame after finish().
  void send(const frame& next);

  // Encodes samples, f32 from -1 to 1 or i16, [samples, channels] or as `tensor_layout` says, with
  // any strides, after the last ones; the first at 0. Values beyond are clipped if the sample
  // format is of integers.
  // Throws error(invalid_argument) for other tensors, and naming the first sample of floats that is
  // not finite or beyond +-2^20, of MP3 +-256; then nothing of the tensor is encoded. The same
  // holds for frames.
  void send(const tensor& samples);

  void finish();
  std::optional<packet> receive();

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace lade::media
