#include <lade/media/av/muxer.hpp>

#include "encoded.hpp"
#include "file_size_limit.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lade::media::muxer_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Writes streams of files into another one, without decoding them.
static void remux(const std::vector<std::string>& sources, const std::string& target,
                  const mux_options& options = {}) {
  muxer file(target, options);
  std::vector<packets> streams;
  for (const auto& each : sources) {
    const demuxer source(read_bytes(each), each);
    const auto kind = source.streams()[0].kind();
    streams.push_back(demux(read_bytes(each), each, kind));
  }
  for (const auto& each : streams) (void)file.add(each.stream());
  for (int i = 0; i < static_cast<int>(streams.size()); ++i)
    for (const auto& each : streams[static_cast<std::size_t>(i)]) file.write(i, each);
  file.finish();
}

static std::string video_named(std::string_view name) {
  for (const auto& each : all_videos)
    if (each.file == name) return video_path(each);
  throw std::runtime_error("no recipe " + std::string(name));
}

static std::string sound_named(std::string_view name) {
  for (const auto& each : all_sounds)
    if (each.file == name) return audio_path(each);
  throw std::runtime_error("no recipe " + std::string(name));
}

// A file, and the container that it is written into.
struct remux_case {
  const char* from;
  const char* to;
};

TEST(Muxer, WritesStreamsOfOtherFilesWithTheirFramesAndTimes) {
  for (const auto& each : {remux_case{"h264.mp4", "mkv"}, remux_case{"h264.mp4", "mov"},
                           remux_case{"h264-long-gop.mp4", "mp4"}, remux_case{"hevc.mp4", "mkv"},
                           remux_case{"vp9.webm", "mkv"}, remux_case{"vp8.webm", "mkv"},
                           remux_case{"av1.mp4", "webm"}, remux_case{"mpeg4-b.mp4", "mkv"},
                           remux_case{"h264-variable.mkv", "mp4"}, remux_case{"ffv1.mkv", "avi"},
                           remux_case{"h264-422-10.mkv", "mp4"}, remux_case{"mjpeg.avi", "mov"}}) {
    const auto source = video_named(each.from);
    const auto target = media_directory / ("remuxed-" + std::string(each.from) + "." + each.to);
    remux({source}, target);
    EXPECT_EQ(frames_of_ffmpeg(target, "v:0"), frames_of_ffmpeg(source, "v:0")) << target;
  }
}

TEST(Muxer, KeepsTimesOfOddRatesExactly) {
  const auto source = media_directory / "odd.mp4";
  video_encoder encoder({.encoder = "libx264",
                         .width = 64,
                         .height = 48,
                         .frame_rate = rational(24000, 1001),
                         .b_frames = 3});
  write_encoded(source, encoder, smooth_pictures(40, 48, 64));
  const auto expected = frames_of_ffmpeg(source, "v:0");
  ASSERT_EQ(expected.size(), 40U);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(expected[i].time, rational(static_cast<std::int64_t>(i) * 1001, 24000));
  for (const char* name : {"odd-again.mp4", "odd-again.mov"}) {
    remux({source}, media_directory / name);
    EXPECT_EQ(frames_of_ffmpeg(media_directory / name, "v:0"), expected) << name;
  }
}

TEST(Muxer, KeepsFramesCutOffByAnEditListOrRefusesTo) {
  const auto cut = media_directory / "cut.mp4";
  media_files::run("-ss 1.1 -i " + video_named("h264-long-gop.mp4") + " -c copy " + cut);
  const auto target = media_directory / "cut-again.mov";
  remux({cut}, target);
  EXPECT_EQ(frames_of_ffmpeg(target, "v:0"), frames_of_ffmpeg(cut, "v:0"));
  EXPECT_THAT([&] { remux({cut}, media_directory / "cut.mkv"); },
              ThrowsMessage<error>(HasSubstr("matroska files have no edit list")));
}

static std::vector<std::string> pictures_of(const std::vector<frame_digest>& frames) {
  std::vector<std::string> pictures;
  for (const auto& each : frames) pictures.push_back(each.md5);
  return pictures;
}

// MPEG-TS does not start at time 0.
TEST(Muxer, WritesBetweenMpegTsAndFilesWithHeadersOnceForAll) {
  for (const auto& each : {remux_case{"h264.mp4", "ts"}, remux_case{"hevc.mp4", "ts"},
                           remux_case{"h264.ts", "mp4"}, remux_case{"mpeg2.ts", "mkv"}}) {
    const auto source = video_named(each.from);
    const auto target = media_directory / ("remuxed-" + std::string(each.from) + "." + each.to);
    remux({source}, target);
    EXPECT_EQ(pictures_of(frames_of_ffmpeg(target, "v:0")),
              pictures_of(frames_of_ffmpeg(source, "v:0")))
        << target;
  }
}

TEST(Muxer, KeepsSamplesOfOtherFiles) {
  for (const auto& each :
       {remux_case{"aac.m4a", "mp4"}, remux_case{"aac.ts", "m4a"}, remux_case{"opus.ogg", "webm"},
        remux_case{"vorbis.ogg", "mkv"}, remux_case{"flac.flac", "mkv"},
        remux_case{"alac.m4a", "mov"}, remux_case{"pcm.wav", "mkv"}}) {
    const auto source = sound_named(each.from);
    const auto target = media_directory / ("remuxed-" + std::string(each.from) + "." + each.to);
    remux({source}, target);
    EXPECT_EQ(samples_of_ffmpeg(target), samples_of_ffmpeg(source)) << target;
  }
}

TEST(Muxer, InterleavesStreams) {
  const auto target = media_directory / "both.mp4";
  remux({video_named("h264.mp4"), sound_named("aac.m4a")}, target);
  EXPECT_EQ(probe(target, "-show_entries stream=codec_name"), "codec_name=h264\ncodec_name=aac\n");
  EXPECT_EQ(frames_of_ffmpeg(target, "v:0"), frames_of_ffmpeg(video_named("h264.mp4"), "v:0"));
  EXPECT_EQ(samples_of_ffmpeg(target), samples_of_ffmpeg(sound_named("aac.m4a")));
  const auto order = probe(target, "-show_entries packet=stream_index");
  EXPECT_LT(order.find("stream_index=1"), 200U) << "the second stream begins near the first";
}

TEST(Muxer, WritesMetadataAndOrientations) {
  const auto path = video_named("h264.mp4");
  const auto source = demux(read_bytes(path), path, stream_kind::video);
  for (const int degrees : {0, 90, 180, 270})
    for (const bool mirrored : {false, true}) {
      const auto target = media_directory / "turned.mp4";
      muxer file(target);
      const int stream = file.add(source.stream());
      file.set_metadata({{"title", "a clip"}, {"comment", "of a test"}});
      file.set_metadata(stream, {{"language", "deu"}});
      file.set_orientation(stream, {.degrees = degrees, .mirrored = mirrored});
      for (const auto& each : source) file.write(stream, each);
      file.finish();
      const demuxer written(read_bytes(target), target);
      EXPECT_EQ(written.streams()[0].orientation(),
                (display_orientation{.degrees = degrees, .mirrored = mirrored}));
      EXPECT_EQ(probe(target, "-show_entries format_tags=title,comment:stream_tags=language"),
                "TAG:language=deu\nTAG:title=a clip\nTAG:comment=of a test\n");
    }
}

TEST(Muxer, KeepsTheOrientationOfAnotherFileOrRefusesTo) {
  const auto upright = video_named("h264.mp4");
  const auto source = demux(read_bytes(upright), upright, stream_kind::video);
  const auto path = media_directory / "lying.mp4";
  muxer file(path);
  file.set_orientation(file.add(source.stream()), {.degrees = 90, .mirrored = true});
  for (const auto& each : source) file.write(0, each);
  file.finish();
  const auto target = media_directory / "lying-again.mov";
  remux({path}, target);
  EXPECT_EQ(demuxer(read_bytes(target), target).streams()[0].orientation(),
            (display_orientation{.degrees = 90, .mirrored = true}));
  EXPECT_THAT([&] { remux({path}, media_directory / "lying.avi"); },
              ThrowsMessage<error>(HasSubstr("avi files do not state an orientation")));
}

// The packets that an encoder makes of one piece of media.
struct coded_stream {
  stream_info stream;
  std::vector<packet> packets;
};

template <class Encoder, class Samples>
static coded_stream coded(Encoder encoder, const Samples& samples) {
  encoder.send(samples);
  encoder.finish();
  coded_stream made{encoder.stream(), {}};
  while (auto next = encoder.receive()) made.packets.push_back(std::move(*next));
  return made;
}

static buffer written(const char* format, const coded_stream& from) {
  auto file = muxer::in_memory({.format = format});
  const int stream = file.add(from.stream);
  for (const auto& each : from.packets) file.write(stream, each);
  file.finish();
  return file.content();
}

// Which containers hold an encoder's codec of audio.
struct held_codec {
  const char* encoder;
  std::vector<const char*> formats;
};

TEST(Muxer, EachContainerOfACodecWithoutLossRestoresItsSamples) {
  const auto samples = sweep(24000, 2);
  const std::string expected(reinterpret_cast<const char*>(samples.bytes()),
                             samples.spec().bytes());
  for (const auto& [encoder, formats] : std::vector<held_codec>{
           {"alac", {"mp4", "mov", "ipod", "matroska", "caf"}},
           {"flac", {"flac", "ogg", "oga", "matroska", "asf", "wav", "w64", "avi", "nut"}},
           {"wavpack", {"wv", "matroska", "nut"}},
           {"tta", {"tta", "matroska"}},
           {"pcm_s16le", {"wav", "w64", "matroska", "mov", "avi", "asf", "nut", "caf", "voc"}},
           {"pcm_s24le", {"wav", "w64", "matroska", "mov", "avi", "nut", "caf"}},
           {"pcm_f32le", {"wav", "w64", "matroska", "mov", "avi", "nut", "caf"}},
           {"pcm_s16be", {"aiff", "au", "mov", "matroska", "nut", "caf", "vob"}}}) {
    const auto from =
        coded(audio_encoder({.encoder = encoder, .sample_rate = 48000, .channels = 2}), samples);
    for (const char* format : formats) {
      const auto frames = decode(demux(written(format, from), format, stream_kind::audio));
      const auto read = resample(frames, {.layout = audio_layout::interleaved});
      EXPECT_TRUE(std::string(reinterpret_cast<const char*>(read.bytes()), read.spec().bytes()) ==
                  expected)
          << encoder << " in " << format;
    }
  }
}

// The name of the codec. Codecs that a container does not distinguish share a name.
static std::string_view family_of(std::string_view codec) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> shared{
      {{"mp2", "mp3"}, {"eac3", "ac3"}, {"aac_latm", "aac"}, {"pcm_dvd", "pcm_s16be"}}};
  for (const auto& [member, family] : shared)
    if (codec == member) return family;
  return codec;
}

// How much of the media can be read from a file: pictures, or samples of a channel.
static std::int64_t length_read(const buffer& file, std::string_view name, const stream_info& of) {
  const auto read = demux(file, name, of.kind());
  EXPECT_EQ(family_of(read.stream().codec()), family_of(of.codec())) << name;
  std::int64_t length = 0;
  for (const auto& each : decode(read))
    length += of.kind() == stream_kind::video ? 1 : each.samples();
  return length;
}

// Writes into a container, and reads what it has accepted. Returns whether it did. Decoders may
// keep the last samples, as that of Windows Media, or add padding.
static bool is_held(const char* format, const coded_stream& from) {
  constexpr std::array<std::string_view, 2> read_by_options{"rawvideo", "s16le"};
  const auto name = std::string(from.stream.codec()).append(" in ").append(format);
  const bool video = from.stream.kind() == stream_kind::video;
  buffer file;
  try {
    file = written(format, from);
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::unsupported) << name << ": " << refused.what();
    EXPECT_THAT(refused.what(), HasSubstr(std::string(format) + " files ")) << name;
    EXPECT_THAT(refused.what(), HasSubstr(" " + std::string(from.stream.codec()))) << name;
    return false;
  }
  if (std::find(read_by_options.begin(), read_by_options.end(), format) != read_by_options.end())
    return true;
  try {
    const auto length = length_read(file, name, from.stream);
    EXPECT_GE(length, video ? 3 : 8192) << name;
    EXPECT_LE(length, video ? 3 : 9600 + 2 * 2048) << name;
  } catch (const std::exception& failure) {
    ADD_FAILURE() << name << ": " << failure.what();
  }
  return true;
}

TEST(Muxer, EachCodecIsReadAgainFromAContainerOrRefusedByIt) {
  std::vector<coded_stream> all;
  for (const char* name :
       {"libx264", "libx265", "libvpx", "libvpx-vp9", "mpeg1video", "mpeg2video", "mpeg4", "mjpeg",
        "ffv1", "png", "rawvideo", "libtheora", "huffyuv", "qtrle", "gif", "wmv2", "flv"})
    all.push_back(
        coded(video_encoder({.encoder = name, .width = 128, .height = 96, .frame_rate = 25}),
              smooth_pictures(3, 96, 128)));
  for (const char* name :
       {"aac", "libmp3lame", "libopus", "libvorbis", "flac", "alac", "pcm_s16le", "pcm_s32le",
        "pcm_f32le", "pcm_s16be", "ac3", "mp2", "wavpack", "tta", "eac3", "adpcm_ima_wav", "wmav2"})
    all.push_back(coded(audio_encoder({.encoder = name, .sample_rate = 48000, .channels = 2}),
                        sweep(9600, 2)));
  constexpr std::array<std::string_view, 8> of_others{"amr", "apng", "aptx",     "data",
                                                      "dv",  "gxf",  "film_cpk", "roq"};
  for (const char* format :
       {"mp4",  "mov",        "matroska", "webm", "avi",      "mpegts", "ogg",        "oga",
        "opus", "flv",        "nut",      "mpeg", "vob",      "svcd",   "dvd",        "asf",
        "wav",  "w64",        "adts",     "mp2",  "mp3",      "flac",   "h264",       "hevc",
        "ivf",  "gif",        "mxf",      "caf",  "aiff",     "au",     "mjpeg",      "m4v",
        "3gp",  "image2pipe", "apng",     "ac3",  "eac3",     "tta",    "wv",         "rm",
        "swf",  "dv",         "f4v",      "ismv", "rawvideo", "s16le",  "sox",        "voc",
        "latm", "amr",        "wtv",      "gxf",  "roq",      "spdif",  "mpeg2video", "aptx",
        "data", "film_cpk"}) {
    const auto held = std::count_if(all.begin(), all.end(),
                                    [&](const auto& each) { return is_held(format, each); });
    const bool none = std::find(of_others.begin(), of_others.end(), format) != of_others.end();
    EXPECT_EQ(held == 0, none) << format;
    EXPECT_LT(held, static_cast<std::ptrdiff_t>(all.size())) << format;
  }
}

TEST(Muxer, MovesTheIndexToTheFrontIfAsked) {
  const auto target = media_directory / "fast.mp4";
  remux({video_named("h264.mp4")}, target, {.options = "movflags=+faststart"});
  const auto content = read_bytes(target);
  EXPECT_LT(content.text().find("moov"), content.text().find("mdat"));
  EXPECT_EQ(frames_of_ffmpeg(target, "v:0"), frames_of_ffmpeg(video_named("h264.mp4"), "v:0"));
}

TEST(Muxer, WritesTheSameIntoMemory) {
  const auto path = video_named("h264.mp4");
  const auto source = demux(read_bytes(path), path, stream_kind::video);
  const mux_options options{.format = "mp4", .options = "movflags=+faststart:fflags=+bitexact"};
  auto memory = muxer::in_memory(options);
  const int stream = memory.add(source.stream());
  for (const auto& each : source) memory.write(stream, each);
  EXPECT_THAT([&] { (void)memory.content(); },
              ThrowsMessage<error>(HasSubstr("it is in memory after finish() only")));
  memory.finish();
  const auto target = media_directory / "same.mp4";
  remux({path}, target, options);
  EXPECT_EQ(memory.content().text(), read_bytes(target).text());
}

TEST(Muxer, ReportsADiskThatIsFullAtAnyPlace) {
  const auto source = video_named("h264.mp4");
  for (const auto& [format, options] : {std::pair{"mp4", ""},
                                        {"mkv", ""},
                                        {"ts", ""},
                                        {"avi", ""},
                                        {"mov", "movflags=+faststart"}}) {
    const mux_options how{.options = options};
    const auto target = media_directory / (std::string("full.") + format);
    const auto whole = media_directory / (std::string("whole.") + format);
    remux({source}, whole, how);
    const auto size = std::filesystem::file_size(whole);
    for (std::uintmax_t limit = 0; limit < size; limit += 1 + size / 16) {
      const file_size_limit full(limit);
      EXPECT_THAT([&] { remux({source}, target, how); },
                  ThrowsMessage<error>(AllOf(HasSubstr("full."), HasSubstr("File too large"))))
          << limit << " of " << size;
      EXPECT_FALSE(std::filesystem::exists(target));
    }
    const file_size_limit last(size - 1);
    EXPECT_THROW(remux({source}, target, how), error) << format;
  }
}

TEST(Muxer, ReportsADeviceThatIsFull) {
  EXPECT_THAT([] { remux({video_named("h264.mp4")}, "/dev/full", {.format = "mpegts"}); },
              ThrowsMessage<error>(HasSubstr("write /dev/full: No space left on device")));
}

TEST(Muxer, SaysWhichContainerCannotBeWrittenToADevice) {
  EXPECT_THAT([] { remux({video_named("h264.mp4")}, "/dev/null", {.format = "mp4"}); },
              ThrowsMessage<error>(HasSubstr("FFmpeg begins no mp4 files of h264: ")));
}

TEST(Muxer, WritesToAPipe) {
  const auto pipe = media_directory / "pipe.ts";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto copy = media_directory / "copy.ts";
  std::thread reader([&] { std::ofstream(copy) << std::ifstream(pipe).rdbuf(); });
  remux({video_named("h264.mp4")}, pipe);
  reader.join();
  EXPECT_EQ(pictures_of(frames_of_ffmpeg(copy, "v:0")),
            pictures_of(frames_of_ffmpeg(video_named("h264.mp4"), "v:0")));
}

static int bytes_in(int pipe) {
  int bytes = 0;
  EXPECT_EQ(ioctl(pipe, FIONREAD, &bytes), 0);
  return bytes;
}

// Writes are of as many bytes as a pipe holds: what comes behind the bytes that were read is a part
// of one.
TEST(Muxer, ReportsAPipeWhoseReaderClosesDuringAWrite) {
  const auto pipe = media_directory / "closing.nut";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread reader([&] {
    const int reads = open(pipe.c_str(), O_RDONLY | O_CLOEXEC);
    while (bytes_in(reads) < 50'000) std::this_thread::yield();
    std::array<char, 10'000> some;
    EXPECT_GT(read(reads, some.data(), some.size()), 0);
    while (bytes_in(reads) < 60'000) std::this_thread::yield();
    close(reads);
  });
  video_encoder encoder({.encoder = "rawvideo", .width = 320, .height = 240, .frame_rate = 25});
  EXPECT_THAT([&] { write_encoded(pipe, encoder, smooth_pictures(10, 240, 320)); },
              ThrowsMessage<error>(HasSubstr("Broken pipe")));
  reader.join();
}

TEST(Muxer, ReportsAPipeThatNobodyReadsAnyMore) {
  const auto pipe = media_directory / "closed.ts";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto path = video_named("h264.mp4");
  const auto source = demux(read_bytes(path), path, stream_kind::video);
  std::thread reader([&] { std::ifstream reads(pipe); });
  muxer file(pipe);
  reader.join();
  const int stream = file.add(source.stream());
  try {
    for (const auto& each : source) file.write(stream, each);
    file.finish();
    FAIL() << "nobody reads";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), std::errc::broken_pipe) << failure.what();
  }
  sigset_t waiting;
  sigset_t blocked;
  sigpending(&waiting);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&waiting, SIGPIPE), 0);
  EXPECT_EQ(sigismember(&blocked, SIGPIPE), 0);
}

TEST(Muxer, WritesTheFileThatALinkLeadsTo) {
  namespace fs = std::filesystem;
  const auto directory = media_directory / "linked";
  fs::create_directory(directory);
  const auto link = media_directory / "link.mp4";
  fs::create_symlink("linked/second.mp4", link);
  fs::create_symlink("file.mp4", directory + "/second.mp4");
  for (int i = 0; i < 2; ++i) {  // first where no file is yet
    muxer unfinished(link);
    EXPECT_TRUE(fs::exists(directory + "/file.mp4.part"));
    EXPECT_THAT([&] { muxer second(directory + "/file.mp4"); },
                ThrowsMessage<error>(HasSubstr("another muxer writes")));
  }
  remux({video_named("h264.mp4")}, link);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(fs::is_symlink(directory + "/second.mp4"));
  EXPECT_GT(fs::file_size(directory + "/file.mp4"), 1000U);
  EXPECT_FALSE(fs::exists(directory + "/file.mp4.part"));
}

TEST(Muxer, KeepsThePermissionsOfTheFileThatItReplaces) {
  namespace fs = std::filesystem;
  const auto target = media_directory / "mode.mp4";
  for (const auto mode : {fs::perms{0600}, fs::perms{0640}, fs::perms{0444}, fs::perms{0755}}) {
    std::ofstream(target) << "old";
    fs::permissions(target, mode);
    { const muxer unfinished(target); }
    EXPECT_EQ(fs::status(target + ".part").permissions(), mode | fs::perms{0600});
    remux({video_named("h264.mp4")}, target);
    EXPECT_EQ(fs::status(target).permissions(), mode);
    fs::remove(target);
  }
}

TEST(Muxer, LeavesTheNameToTheOldFileUntilTheNewOneIsFinished) {
  const auto target = media_directory / "replaced.mp4";
  std::ofstream(target) << "old";
  const auto path = video_named("h264.mp4");
  const auto source = demux(read_bytes(path), path, stream_kind::video);
  {
    muxer abandoned(target);
    abandoned.write(abandoned.add(source.stream()), source[0]);
    EXPECT_THAT([&] { muxer second(target); },
                ThrowsMessage<error>(HasSubstr("another muxer writes")));
  }
  EXPECT_EQ(read_bytes(target).text(), "old");
  EXPECT_TRUE(std::filesystem::exists(target + ".part"));
  remux({path}, target);
  EXPECT_GT(std::filesystem::file_size(target), 1000U);
  EXPECT_FALSE(std::filesystem::exists(target + ".part"));
}

TEST(Muxer, RefusesCallsAfterAFailure) {
  const auto path = video_named("h264.mp4");
  const auto source = demux(read_bytes(path), path, stream_kind::video);
  muxer file("/dev/full", {.format = "mpegts"});
  const int stream = file.add(source.stream());
  EXPECT_THROW(
      {
        for (const auto& each : source) file.write(stream, each);
        file.finish();
      },
      error);
  EXPECT_THAT([&] { file.finish(); }, ThrowsMessage<error>(HasSubstr("an earlier call failed")));
}

TEST(Muxer, RefusesWhatTheContainerDoesNotHold) {
  EXPECT_THAT([] { muxer(media_directory / "list.m3u8"); },
              ThrowsMessage<error>(HasSubstr("the format hls is not one of single files")));
  EXPECT_THAT([] { muxer("", {.format = "mp4"}); },
              ThrowsMessage<error>(HasSubstr("its path is empty")));
  EXPECT_THAT([] { muxer(media_directory / ".", {.format = "mp4"}); },
              ThrowsMessage<error>(HasSubstr("Is a directory")));
  EXPECT_THAT([] { muxer(media_directory / "clip.nosuch"); },
              ThrowsMessage<error>(HasSubstr("FFmpeg has no format for its extension")));
  EXPECT_THAT([] { muxer(media_directory / "clip", {.format = "nosuch"}); },
              ThrowsMessage<error>(HasSubstr("FFmpeg has no format nosuch")));
  for (const char* format : {"crc", "md5", "framemd5", "streamhash", "ffmetadata", "chromaprint"})
    EXPECT_THAT([&] { (void)muxer::in_memory({.format = format}); },
                ThrowsMessage<error>(HasSubstr(format + std::string(" holds no packets"))));
  EXPECT_FALSE(std::filesystem::exists(media_directory / "list.m3u8.part"));
  EXPECT_THAT([] { muxer(media_directory / "options.mp4", {.options = "movflag=+faststart"}); },
              ThrowsMessage<error>(HasSubstr("unknown option movflag")));
  EXPECT_THAT([] { remux({video_named("h264.mp4")}, media_directory / "clip.webm"); },
              ThrowsMessage<error>(HasSubstr("webm files do not hold h264")));
  EXPECT_THAT([] { remux({video_named("vp9.webm")}, media_directory / "clip.mp4"); },
              ThrowsMessage<error>(HasSubstr("mp4 files state the pixel format of vp9")));
  EXPECT_THAT([] { muxer(media_directory / "none.mp4").finish(); },
              ThrowsMessage<error>(HasSubstr("it has no streams")));
}

TEST(Muxer, RefusesMisuse) {
  const auto sound = sound_named(all_sounds[0].file);
  muxer file(media_directory / "misuse.mka");
  const int stream = file.add(demux(read_bytes(sound), sound, stream_kind::audio).stream());
  const auto expect = [](auto call, const char* text) {
    EXPECT_THAT(call, ThrowsMessage<error>(HasSubstr(text)));
  };
  expect([&] { file.set_metadata(7, {}); }, "write stream 7 of");
  expect([&] { file.set_orientation(-1, {}); }, "write stream -1 of");
  expect([&] { file.set_orientation(stream, {.degrees = 90}); }, "the stream is no video");
  expect([&] { (void)file.content(); }, "it is in memory after finish() only");
  file.finish();
  expect([&] { file.finish(); }, "it is finished");
  expect([&] { file.set_metadata({}); }, "its first packet has been written");
  expect([] { (void)muxer::in_memory({}); }, "write memory: FFmpeg has no format");
  expect([] { (void)muxer::in_memory({.format = "hls"}); }, "not one of single files");
  const auto video = video_named("h264.mp4");
  auto memory = muxer::in_memory({.format = "mp4"});
  const int turned = memory.add(demux(read_bytes(video), video, stream_kind::video).stream());
  for (const int degrees : {45, -90, 360, 450})
    expect([&] { memory.set_orientation(turned, {.degrees = degrees}); },
           "degrees must be 0, 90, 180 or 270");
  const std::string nul("a\0b", 3);
  expect([&] { memory.set_metadata({{"title", nul}}); }, "the key or value of title has a NUL");
  expect([&] { memory.set_metadata(turned, {{nul, "b"}}); }, "the key or value of a has a NUL");
  memory.finish();
  EXPECT_EQ(demuxer(memory.content()).streams().size(), 0U) << "a file without packets";
}

TEST(Muxer, NothingOfFfmpegIsPrinted) {
  testing::internal::CaptureStderr();
  for (const char* format : {"ts", "mkv", "avi", "mp4", "mov"}) {
    const auto target = media_directory / (std::string("quiet.") + format);
    audio_encoder encoder({.encoder = "aac", .sample_rate = 44100, .channels = 2});
    write_encoded(target, encoder, sweep(5000, 2));
    EXPECT_THROW(remux({video_named("h264.mp4")}, "/dev/full", {.format = "mpegts"}), error);
  }
  { muxer abandoned(media_directory / "abandoned.mp4"); }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

static void file_is_of_no_use(muxer& file) {
  EXPECT_THAT([&] { file.finish(); }, ThrowsMessage<error>(HasSubstr("an earlier call failed")));
  EXPECT_THAT([&] { file.set_orientation(0, {}); },
              ThrowsMessage<error>(HasSubstr("an earlier call failed")));
}

TEST(Muxer, RefusesPacketsThatGoBackInTime) {
  const auto path = video_named("h264.mp4");
  const auto source = demux(read_bytes(path), path, stream_kind::video);
  muxer file(media_directory / "back.mp4");
  const int stream = file.add(source.stream());
  file.write(stream, source[1]);
  EXPECT_THAT([&] { file.write(stream, source[0]); },
              ThrowsMessage<error>(HasSubstr("a packet goes back in time")));
}

TEST(Muxer, FinishesNoFileAfterAnyException) {
  const auto path = video_named("h264.mp4");
  const auto source = demux(read_bytes(path), path, stream_kind::video);
  const auto target = media_directory / "failed.mp4";
  const std::vector<void (*)(muxer&, const packets&)> failing{
      [](muxer& file, const packets& from) { file.write(0, from[0]); },
      [](muxer& file, const packets& from) { file.write(7, from[1]); },
      [](muxer& file, const packets& from) { file.write(-1, from[1]); }};
  for (const auto& fail : failing) {
    muxer file(target);
    const int stream = file.add(source.stream());
    file.write(stream, source[0]);
    EXPECT_THROW(fail(file, source), error);
    const auto expect = [](auto call) {
      EXPECT_THAT(call, ThrowsMessage<error>(HasSubstr("an earlier call failed")));
    };
    expect([&] { file.write(stream, source[1]); });
    expect([&] { file.finish(); });
    expect([&] { (void)file.add(source.stream()); });
    expect([&] { file.set_metadata({}); });
    EXPECT_FALSE(std::filesystem::exists(target));
  }
}

TEST(Muxer, FinishesNoFileWhoseStreamsItRefusesWhenItBegins) {
  const auto path = video_named("h264.mp4");
  const auto source = demux(read_bytes(path), path, stream_kind::video);
  muxer file(media_directory / "refused.avi");
  file.set_orientation(file.add(source.stream()), {.degrees = 90});
  EXPECT_THROW(file.write(0, source[0]), error);
  file_is_of_no_use(file);
  muxer none(media_directory / "none.mp4");
  EXPECT_THROW(none.finish(), error);
  file_is_of_no_use(none);
}

}  // namespace lade::media::muxer_test
