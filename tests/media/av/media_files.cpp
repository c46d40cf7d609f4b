#include "media_files.hpp"

#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/stop_requested.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/imgutils.h>
#include <libavutil/md5.h>
#include <libavutil/samplefmt.h>
}

namespace lade::media {

static std::string hexadecimal(const std::array<std::uint8_t, 16>& digest) {
  std::string text;
  for (const auto byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

static std::string md5_of(const std::vector<std::uint8_t>& bytes) {
  std::array<std::uint8_t, 16> digest{};
  av_md5_sum(digest.data(), bytes.data(), bytes.size());
  return hexadecimal(digest);
}

frame_digest digest_of(const frame& of) {
  const auto& from = of.get();
  const auto format = static_cast<AVPixelFormat>(from.format);
  const int size = av_image_get_buffer_size(format, from.width, from.height, 1);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  av_image_copy_to_buffer(bytes.data(), size, from.data, from.linesize, format, from.width,
                          from.height, 1);
  return {of.time(), md5_of(bytes)};
}

std::string output_of(const std::string& line) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(line.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("failed: " + line);
  std::string text;
  std::array<char, 65536> part;
  while (const auto count = std::fread(part.data(), 1, part.size(), pipe.get()))
    text.append(part.data(), count);
  return text;
}

// The time base of the input: a word from FFmpeg 6.1 on, and a number before 8.0.
static constexpr const char* time_base_of_input = LIBAVFORMAT_VERSION_MAJOR >= 61 ? "demux" : "-1";

// Lines are "stream, dts, pts, duration, size, md5", comments begin with "#".
std::vector<frame_digest> frames_of_ffmpeg(const std::string& path, const std::string& stream) {
  const auto text =
      output_of("ffmpeg -nostdin -v error -copyts -noautorotate -i " + path + " -map " + stream +
                " -fps_mode passthrough -enc_time_base " + time_base_of_input + " -f framemd5 -");
  std::vector<frame_digest> frames;
  rational unit;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    char md5[33] = "";
    long long pts = 0;
    int numerator = 0;
    int denominator = 0;
    if (std::sscanf(line.c_str(), "#tb 0: %d/%d", &numerator, &denominator) == 2)
      unit = rational(numerator, denominator);
    else if (std::sscanf(line.c_str(), "%*d, %*d, %lld, %*d, %*d, %32s", &pts, md5) == 2)
      frames.push_back({rational(pts) * unit, md5});
  }
  return frames;
}

std::string joined_recordings() {
  const std::string one = media_directory / "h264-one.ts";
  media_files::run("-i " + video_path(video_recipe("h264.mp4")) + " -c copy " + one);
  return joined_transport_streams(one, "joined.ts");
}

std::string joined_transport_streams(const std::string& one, const std::string& file) {
  const auto part = read_bytes(one);
  std::string joined(part.text());
  joined += part.text();
  constexpr std::size_t packet_bytes = 188;
  std::map<int, int> counters;  // by the packet identifier
  for (std::size_t at = 0; at + packet_bytes <= joined.size(); at += packet_bytes) {
    const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(joined[at + i]); };
    const int stream = (byte_at(1) & 0x1f) << 8 | byte_at(2);
    const bool has_payload = (byte_at(3) & 0x10) != 0;
    if (!has_payload) continue;
    const auto known = counters.find(stream);
    const int counter = known == counters.end() ? byte_at(3) & 15 : (known->second + 1) & 15;
    joined[at + 3] = static_cast<char>((byte_at(3) & 0xf0) | counter);
    counters[stream] = counter;
  }
  std::string path = media_directory / file;
  std::ofstream(path, std::ios::binary)
      .write(joined.data(), static_cast<std::streamsize>(joined.size()));
  return path;
}

std::string two_videos() {
  std::string path = media_directory / "two.mkv";
  media_files::run(std::string(moving) + " -f lavfi -i testsrc=size=64x48:rate=10:duration=1 " +
                   sounding + " -map 0 -map 1 -map 2 -t 1 -c:v ffv1 -pix_fmt yuv420p -c:a flac " +
                   path);
  return path;
}

std::string growing_video() {
  std::string joined;
  for (const char* size : {"64x48", "128x96"}) {
    const std::string part = media_directory / "part.h264";
    media_files::run("-f lavfi -i testsrc2=rate=25:duration=1:size=" + std::string(size) +
                     " -c:v libx264 -pix_fmt yuv420p " + part);
    joined += read_bytes(part).text();
  }
  std::string path = media_directory / "growing.h264";
  std::ofstream(path, std::ios::binary)
      .write(joined.data(), static_cast<std::streamsize>(joined.size()));
  return path;
}

static std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

static std::uint32_t big_endian_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// A list has a duration in units of the file, a time in units of the stream, and a rate for each
// edit (ISO/IEC 14496-12, 8.6.6). The first edit of the file states how much reordering delays its
// first frame. Its boxes lie behind the media, whose positions stay.
std::string edited_video(const std::string& file, const std::vector<video_edit>& edits) {
  constexpr std::uint32_t file_units = 40;  // for each frame, by default 1/1000 s
  constexpr std::uint32_t units = 512;
  constexpr std::size_t edit_bytes = 12;
  std::string content(read_bytes(video_path(video_recipe("h264.mp4"))).text());
  const auto count_at = content.find("elst") + 8;
  const auto old_bytes = edit_bytes * big_endian_at(content, count_at);
  const auto delay = big_endian_at(content, count_at + 8);
  std::string list = big_endian(static_cast<std::uint32_t>(edits.size()));
  for (const auto& each : edits)
    list += big_endian(file_units * static_cast<std::uint32_t>(each.frames)) +
            big_endian(delay + units * static_cast<std::uint32_t>(each.first)) +
            big_endian(1U << 16);
  for (const char* box : {"moov", "trak", "edts", "elst"}) {
    const auto at = content.find(box) - 4;
    const auto size = big_endian_at(content, at) + list.size() - 4 - old_bytes;
    content.replace(at, 4, big_endian(static_cast<std::uint32_t>(size)));
  }
  content.replace(count_at, 4 + old_bytes, list);
  std::string path = media_directory / file;
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
  return path;
}

std::string output_of_ffmpeg(const std::string& arguments) {
  return output_of("ffmpeg -nostdin -v error " + arguments);
}

std::string probe(const std::string& path, const std::string& arguments) {
  return output_of("ffprobe -v error -of default=nw=1 " + arguments + " " + path);
}

std::vector<float> samples_of_ffmpeg(const std::string& path) {
  return converted_by_ffmpeg<float>(path, "");
}

std::error_code error_in_a_stopped_stage(const std::function<void()>& call) {
  runtime runs({.threads = 1});
  std::atomic<bool> called = false;
  std::error_code found;
  auto items = runs.run(from(std::vector<int>(1)) | map([&](int) {
                          called = true;
                          while (!stop_requested()) std::this_thread::yield();
                          try {
                            call();
                          } catch (const error& failure) {
                            found = failure.code();
                          }
                          return 0;
                        }));
  std::thread stopping([&] {
    while (!called) std::this_thread::yield();
    items.stop();
  });
  EXPECT_THROW(while (items.wait_next()){}, error);
  stopping.join();
  return found;
}

}  // namespace lade::media
