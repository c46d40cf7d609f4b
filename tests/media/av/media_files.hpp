// Media files that the tests make with the ffmpeg program, and what that program decodes from them.

#pragma once

#include "../../support/temp_dir.hpp"

#include <lade/buffer.hpp>
#include <lade/media/av/frame.hpp>
#include <lade/media/av/rational.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

extern "C" {
#include <libavformat/version.h>
}

namespace lade::media {

// How ffmpeg makes a file: options and codecs of its command line.
struct media_recipe {
  const char* file;
  const char* arguments;
  const char* from = nullptr;  // another recipe's file, which "{}" in the arguments stands for

  friend std::ostream& operator<<(std::ostream& out, const media_recipe& recipe) {
    return out << recipe.file;
  }
};

// Videos of about two seconds with sizes that are no multiples of 16, some of them odd.
inline constexpr const char* moving = "-f lavfi -i testsrc2=size=178x98:rate=25:duration=2.2";

// A copy of "{}" that is shown turned. The ffmpeg program takes this as an option of its input from
// 6.0 on, and as one of its output before 7.0.
#if LIBAVFORMAT_VERSION_MAJOR >= 60
inline constexpr const char* turned_copy = "-display_rotation 90 -i {} -c copy";
#else
inline constexpr const char* turned_copy = "-i {} -c copy -metadata:s:v rotate=90";
#endif

inline std::span<const media_recipe> video_recipes() {
  static constexpr media_recipe recipes[] = {
      {"h264.mp4", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"},
      {"h264-long-gop.mp4", "-c:v libx264 -g 250 -bf 3 -b-pyramid normal -pix_fmt yuv420p"},
      {"h264-open-gop.mp4", "-c:v libx264 -g 10 -bf 2 -x264-params open-gop=1 -pix_fmt yuv420p"},
      {"h264-444.mkv", "-c:v libx264 -g 12 -pix_fmt yuv444p"},
      {"h264-422-10.mkv", "-c:v libx264 -g 12 -pix_fmt yuv422p10le"},
      {"h264-interlaced.mp4",
       "-vf scale=176:96 -c:v libx264 -g 12 -flags +ildct+ilme -x264-params tff=1 -pix_fmt "
       "yuv420p"},
      {"h264.ts", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"},
      {"h264-fragmented.mp4",
       "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p -movflags frag_keyframe+empty_moov"},
      {"h264-faststart.mp4", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p -movflags faststart"},
      {"h264-variable.mkv",
       "-vf select='not(mod(n\\,3))+not(mod(n\\,7))' -fps_mode vfr -c:v libx264 -g 12 -pix_fmt "
       "yuv420p"},
      {"h264.avi", "-c:v libx264 -g 12 -bf 0 -pix_fmt yuv420p"},
      {"hevc.mp4", "-c:v libx265 -x265-params log-level=none:keyint=14:bframes=3 -pix_fmt yuv420p"},
      {"hevc-closed.mkv",
       "-c:v libx265 -x265-params log-level=none:keyint=14:bframes=3:open-gop=0 -pix_fmt "
       "yuv420p10le"},
      {"vp8.webm", "-c:v libvpx -g 12 -auto-alt-ref 1 -lag-in-frames 8 -b:v 200k"},
      {"vp9.webm", "-c:v libvpx-vp9 -g 12 -auto-alt-ref 1 -lag-in-frames 8 -b:v 200k -cpu-used 8"},
      {"av1.mp4", "-c:v libsvtav1 -g 12 -preset 12 -pix_fmt yuv420p"},
      {"mpeg2.ts", "-c:v mpeg2video -g 12 -bf 2"},
      {"mpeg2.mkv", "-c:v mpeg2video -g 12 -bf 2"},
      {"mpeg4.avi", "-c:v mpeg4 -g 12 -bf 0"},
      {"mpeg4-b.mp4", "-c:v mpeg4 -g 12 -bf 2"},
      {"mjpeg.avi", "-c:v mjpeg -pix_fmt yuvj420p"},
      {"ffv1.mkv", "-c:v ffv1 -pix_fmt yuv444p"},
      {"late-start.mp4", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p -output_ts_offset 3"},
      {"h264-odd-444.mov", "-vf scale=177:99 -c:v libx264 -g 12 -bf 2 -pix_fmt yuv444p"},
      {"h264-grey.mp4", "-c:v libx264 -g 12 -bf 2 -pix_fmt gray"},
      {"hevc-422-12.mp4",
       "-c:v libx265 -x265-params log-level=none:keyint=14:bframes=3 -pix_fmt yuv422p12le"},
      {"vp9-odd.webm", "-vf scale=177:99 -c:v libvpx-vp9 -g 12 -b:v 200k -cpu-used 8"},
      {"ffv1-odd.mkv", "-vf scale=177:99 -c:v ffv1 -pix_fmt yuv420p"},
      {"ffv1-grey-16.mkv", "-c:v ffv1 -pix_fmt gray16le"},
      {"theora.ogv", "-c:v libtheora -g 12"},
      {"h264-gap.mp4",
       "-vf select='lt(t\\,0.5)+gt(t\\,1.4)' -fps_mode passthrough -c:v libx264 -g 12 -bf 2 "
       "-pix_fmt yuv420p"},
      {"h264-negative.mp4",
       "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p -output_ts_offset -1 -avoid_negative_ts "
       "disabled"},
      // Times are stated in milliseconds, and repeat.
      {"h264-repeated-times.mkv",
       "-vf settb=1/2500,setpts=N -enc_time_base 1:2500 -fps_mode passthrough -c:v libx264 -g 12 "
       "-bf 2 -pix_fmt yuv420p"},
      {"h264-one-time.mkv",
       "-vf setpts=0 -enc_time_base 1:2500 -fps_mode passthrough -c:v libx264 -g 12 -bf 2 -pix_fmt "
       "yuv420p"},
      // An edit list begins in the middle of the only group of pictures.
      {"h264-cut.mp4", "-ss 0.3 -i {} -c copy", "h264-long-gop.mp4"},
      // The first packets need a key frame that is not there, and have no frames.
      {"h264-no-first-key.mkv", "-i {} -ss 0.3 -c copy -copyinkf", "h264.mp4"},
      {"h264-no-first-key.ts", "-i {} -ss 0.3 -c copy -copyinkf", "h264.mp4"},
      {"av1-10.webm", "-c:v libsvtav1 -g 12 -preset 12 -pix_fmt yuv420p10le"},
      {"mpeg2-interlaced-422.mkv",
       "-vf scale=176:96 -c:v mpeg2video -g 12 -bf 2 -flags +ildct+ilme -pix_fmt yuv422p"},
      {"h264-rotated.mov", turned_copy, "h264.mp4"},
  };
  return recipes;
}

// Videos that do not state when frames are shown, or only of some.
inline std::span<const media_recipe> untimed_recipes() {
  static constexpr media_recipe recipes[] = {
      {"mpeg4-b.avi", "-c:v mpeg4 -g 12 -bf 2"},
      {"h264-b.avi", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"},
      {"raw.h264", "-c:v libx264 -g 12 -bf 2 -pix_fmt yuv420p"},
      {"h264-late-times.mkv", "-ss 1.1 -i {} -c copy -avoid_negative_ts disabled", "h264.mp4"},
  };
  return recipes;
}

// Videos that are refreshed part by part: most of their key frames are no IDR pictures, and only
// frames some time behind these are whole.
inline std::span<const media_recipe> refreshed_recipes() {
  static constexpr media_recipe recipes[] = {
      {"refreshed.mp4",
       "-c:v libx264 -bf 0 -x264-params intra-refresh=1:keyint=12 -pix_fmt yuv420p"},
      {"refreshed.mkv", "-i {} -c copy", "refreshed.mp4"},
      {"refreshed.ts",
       "-c:v libx264 -bf 0 -x264-params intra-refresh=1:keyint=12 -pix_fmt yuv420p"},
      {"refreshed-b.mp4",
       "-c:v libx264 -bf 2 -x264-params intra-refresh=1:keyint=12 -pix_fmt yuv420p"},
      {"refreshed-idr.mp4",
       "-c:v libx264 -bf 0 -x264-params intra-refresh=1:keyint=12 -forced-idr 1 "
       "-force_key_frames 1 -pix_fmt yuv420p"},
      // Their first frames are never whole, and are not returned.
      {"refreshed-cut.ts", "-i {} -ss 0.9 -c copy", "refreshed.ts"},
      {"refreshed-cut.mp4", "-i {} -ss 0.9 -c copy", "refreshed.ts"},
  };
  return recipes;
}

inline constexpr const char* sounding =
    "-f lavfi -i aevalsrc=0.4*sin(660*t)|0.3*sin(440*t*t):s=44100:d=2.2";

inline std::span<const media_recipe> audio_recipes() {
  static constexpr media_recipe recipes[] = {
      {"aac.m4a", "-c:a aac"},          {"mp3.mp3", "-c:a libmp3lame"},
      {"opus.ogg", "-c:a libopus"},     {"opus.webm", "-c:a libopus"},
      {"vorbis.ogg", "-c:a libvorbis"}, {"flac.flac", "-c:a flac"},
      {"alac.m4a", "-c:a alac"},        {"pcm.wav", "-c:a pcm_s16le"},
      {"float.wav", "-c:a pcm_f32le"},  {"pcm24.wav", "-c:a pcm_s24le"},
      {"aac.ts", "-c:a aac"},           {"aac.mkv", "-c:a aac"},
  };
  return recipes;
}

inline const testing_support::temp_dir media_directory;

// The files, which are made when they are first asked for, and removed at the end of the program;
// or kept in the directory LADE_MEDIA_FILES, for machines without the ffmpeg program.
class media_files {
 public:
  static std::string path(const media_recipe& recipe, const char* input) {
    const char* kept = std::getenv("LADE_MEDIA_FILES");
    auto file =
        kept == nullptr ? media_directory / recipe.file : std::string(kept) + "/" + recipe.file;
    if (!std::filesystem::exists(file)) run(arguments_of(recipe, input) + " " + file);
    return file;
  }

  static std::string arguments_of(const media_recipe& recipe, const char* input);

  static void run(const std::string& arguments) {
    const auto line = "ffmpeg -nostdin -v error -bitexact -y " + quoted(arguments);
    if (std::system(line.c_str()) != 0) throw std::runtime_error("failed: " + line);
  }

  // The recipes have no characters that a shell would change but these.
  static std::string quoted(std::string_view arguments) {
    std::string result;
    for (const char each : arguments) {
      if (std::string_view("()*|;'").find(each) != std::string_view::npos) result += '\\';
      result += each;
    }
    return result;
  }
};

inline std::string video_path(const media_recipe& recipe) {
  return media_files::path(recipe, moving);
}
inline const media_recipe& video_recipe(std::string_view file) {
  for (const auto all : {video_recipes(), refreshed_recipes()})
    if (const auto found = std::ranges::find(all, file, &media_recipe::file); found != all.end())
      return *found;
  throw std::runtime_error("no recipe " + std::string(file));
}
inline std::string media_files::arguments_of(const media_recipe& recipe, const char* input) {
  std::string arguments = recipe.arguments;
  if (recipe.from == nullptr) return std::string(input) + " -t 2 " + arguments;
  return arguments.replace(arguments.find("{}"), 2, video_path(video_recipe(recipe.from)));
}
inline std::string audio_path(const media_recipe& recipe) {
  return media_files::path(recipe, sounding);
}

inline buffer read_bytes(const std::string& path) {
  buffer content(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  return content;
}

// What identifies a frame: its time, and the MD5 of its planes without padding.
struct frame_digest {
  std::optional<rational> time;
  std::string md5;

  friend bool operator==(const frame_digest&, const frame_digest&) = default;
  friend std::ostream& operator<<(std::ostream& out, const frame_digest& digest) {
    return out << (digest.time ? to_string(*digest.time) : "no time") << " " << digest.md5;
  }
};

frame_digest digest_of(const frame& of);

// The frames that the ffmpeg program decodes, each as its "framemd5" has it. `arguments` may seek.
std::vector<frame_digest> frames_of_ffmpeg(const std::string& path, const std::string& stream);

// The samples that the ffmpeg program decodes, as interleaved f32.
std::vector<float> samples_of_ffmpeg(const std::string& path);

// Two recordings in one file, whose times overlap. Packets of MPEG-TS have a counter for each of
// their streams, which goes on (ISO/IEC 13818-1, 2.4.3.3).
std::string joined_recordings();

// The path of a file with all of a transport stream twice, whose packets are counted on.
std::string joined_transport_streams(const std::string& one, const std::string& file);

// A file with a video of 25 pictures, another one of 10 pictures of 64 x 48, and audio.
std::string two_videos();

// H.264 without a container and times: 25 pictures of 64 x 48, and behind them as many of 128 x 96.
std::string growing_video();

// One edit of an MP4 file: a part of its video that is shown.
struct video_edit {
  int frames;
  int first;  // number of the frame with which it begins
};

// h264.mp4, 50 frames in groups of 12, with another list of edits.
std::string edited_video(const std::string& file, const std::vector<video_edit>& edits);

// The bytes that the ffmpeg program writes to its standard output: "-i a.wav -f f32le -".
std::string output_of_ffmpeg(const std::string& arguments);

// The samples that it writes, interleaved, with these options for its output: "-ar 16000 -ac 1".
template <class T>
std::vector<T> converted_by_ffmpeg(const std::string& path, const std::string& options) {
  const bool floats = std::is_same_v<T, float>;
  const auto bytes = output_of_ffmpeg("-i " + path + " -map a:0 " + options + " -c:a " +
                                      (floats ? "pcm_f32le -f f32le -" : "pcm_s16le -f s16le -"));
  std::vector<T> samples(bytes.size() / sizeof(T));
  std::memcpy(samples.data(), bytes.data(), samples.size() * sizeof(T));
  return samples;
}

// What a command prints to its standard output.
std::string output_of(const std::string& line);

// What the ffprobe program prints of a file, by the arguments given: values line by line.
std::string probe(const std::string& path, const std::string& arguments);

// Calls a function in a stage that is being stopped. Returns the code of the error that it throws,
// none if it throws nothing.
std::error_code error_in_a_stopped_stage(const std::function<void()>& call);

inline std::string name_of_recipe(const testing::TestParamInfo<media_recipe>& info) {
  std::string name;
  for (const char each : std::string_view(info.param.file))
    if (std::isalnum(static_cast<unsigned char>(each)) != 0) name += each;
  return name;
}

}  // namespace lade::media
