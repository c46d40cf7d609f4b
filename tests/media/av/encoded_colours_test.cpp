#include <lade/media/av/convert.hpp>
#include <lade/media/av/encoder.hpp>

#include "encoded.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <map>
#include <string>

extern "C" {
#include <libavcodec/codec_par.h>
#include <libavutil/pixdesc.h>
}

namespace lade::media::encoded_colours_test {

using testing::HasSubstr;
using testing::ThrowsMessage;

// An encoder, and files that its stream is written to.
struct coloured_encoder {
  const char* encoder;
  std::vector<const char*> files;  // extensions
  const char* options = "";
  const char* pixel_format = "";
  int least_height = 96;
  std::optional<double> quality = {};
};

static const std::vector<coloured_encoder> coloured_encoders{
    {"libx264", {"mp4", "mkv", "ts", "avi"}, "preset=veryfast"},
    {"libx264rgb", {"mkv"}, "preset=veryfast"},
    {"libx265", {"mp4", "mkv", "ts"}, "preset=ultrafast"},
    {"libvpx", {"webm", "mkv", "avi"}, "cpu-used=8:crf=10:qmax=10"},
    {"libvpx-vp9", {"webm", "mp4", "avi"}, "cpu-used=8:deadline=realtime"},
    {"libaom-av1", {"mp4"}, "cpu-used=8:usage=realtime"},
    {"libsvtav1", {"mkv"}, "preset=12"},
    {"mpeg1video", {"mkv", "mpg", "avi"}},
    {"mpeg2video", {"mkv", "ts", "mp4", "mpg"}},
    {"mpeg4", {"mp4", "mov", "mkv", "avi", "ts"}},
    {"libxvid", {"mkv", "avi"}},
    {"h263p", {"avi"}},
    {"flv", {"flv", "avi"}},
    {"wmv1", {"avi"}},
    {"wmv2", {"asf", "avi"}},
    {"msmpeg4", {"avi", "mkv"}},
    {"libtheora", {"ogg", "mkv"}, "", "", 96, 10},
    {"mjpeg", {"mov", "avi", "mkv"}},
    {"mjpeg", {"mkv"}, "strict=unofficial"},
    {"mjpeg", {"mkv"}, "", "yuvj420p"},
    {"ljpeg", {"avi"}, "strict=unofficial"},
    {"ffv1", {"mkv", "avi"}},
    {"ffv1", {"mkv", "avi"}, "", "bgra"},
    {"huffyuv", {"avi"}, "", "yuv422p"},
    {"ffvhuff", {"avi"}},
    {"utvideo", {"avi"}},
    {"magicyuv", {"avi"}},
    {"ffv1", {"mkv", "avi"}, "", "gray"},
    {"prores", {"mov", "mkv"}},
    {"prores_ks", {"mov", "mkv"}},
    {"dnxhd", {"mov"}, "profile=dnxhr_hq", "yuv422p", 128},
    {"vc2", {"mkv"}, "strict=-2"},
    {"jpeg2000", {"mov", "avi"}, "", "yuv420p"},
    {"snow", {"avi"}, "strict=-2"},
    {"speedhq", {"avi"}},
    {"png", {"mov", "avi"}},
    {"rawvideo", {"mkv", "avi", "nut"}},
    {"rawvideo", {"mov"}, "", "rgb24"}};

// One colour, u8 [n, height, width, 3], but for a pixel at the top, which differs from picture to
// picture: libtheora refuses equal pictures.
static tensor colour_pictures(std::int64_t n, int height, int width) {
  tensor pictures(element_type::u8, {n, height, width, 3});
  constexpr std::array<std::uint8_t, 3> rgb{60, 200, 120};
  auto* bytes = pictures.data<std::uint8_t>();
  const auto count = pictures.spec().bytes();
  for (std::size_t i = 0; i < count; i += rgb.size())
    std::memcpy(bytes + i, rgb.data(), rgb.size());
  for (std::int64_t i = 0; i < n; ++i) std::memset(pictures[i].bytes(), i % 2 == 0 ? 0 : 255, 96);
  return pictures;
}

// Whether a pixel is the colour, or grey of its luma by the default matrix.
static void expect_pixel(const std::uint8_t* found, int height, bool grey) {
  const int luma = height > 576 ? 164 : 149;
  const auto rgb = grey ? std::array{luma, luma, luma} : std::array{60, 200, 120};
  for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(found[c], rgb[c], 4) << "channel " << c;
}

static void expect_colour(const frame& first, bool grey) {
  const auto picture = to_tensor(first);
  expect_pixel(picture[first.height() / 2][first.width() / 2].data<std::uint8_t>(), first.height(),
               grey);
}

// As the ffmpeg program decodes it, which takes BT.601 for all files that do not state a matrix.
static void expect_colour_of_ffmpeg(const std::string& path, const frame& first, bool grey) {
  const auto decoded = rgb_of_ffmpeg(path);
  const auto middle =
      static_cast<std::size_t>(3 * first.width()) * static_cast<std::size_t>(first.height() / 2);
  ASSERT_GT(decoded.size(), middle + 3);
  expect_pixel(decoded.data() + middle, first.height(), grey);
}

static video_encode_options options_of(const coloured_encoder& each, int height) {
  return {.encoder = each.encoder,
          .width = height > 576 ? 1280 : 256,
          .height = height,
          .frame_rate = 25,
          .pixel_format = each.pixel_format,
          .quality = each.quality,
          .options = each.options};
}

TEST(EncodedColours, TheDefaultColourSurvivesEveryEncoderAndFile) {
  for (const auto& each : coloured_encoders)
    for (const char* file : each.files)
      for (const int height : {each.least_height, 720}) {
        const auto options = options_of(each, height);
        SCOPED_TRACE(std::string(each.encoder) + " " + each.pixel_format + " in " + file + ", " +
                     std::to_string(height) + " rows");
        const auto path = media_directory / (std::string("default.") + file);
        try {
          video_encoder encoder(options);
          write_encoded(path, encoder,
                        colour_pictures(height > 576 ? 1 : 4, height, options.width));
          const bool grey = options.pixel_format == "gray";
          const auto first = frames_of_file(path, stream_kind::video)[0];
          expect_colour(first, grey);
          const bool with_program = height < 720 || file == each.files[0];
          if (with_program && (height < 720 || first.colour().matrix != "unknown"))
            expect_colour_of_ffmpeg(path, first, grey);
        } catch (const error& failed) {
          ADD_FAILURE() << failed.what();
        }
      }
}

// Names that mean the same.
static std::string_view plain_colour(std::string_view name) {
  return name == "bt470bg" ? "smpte170m" : name;
}

// If a file does not state a requested field, the field has the default of decoders.
static void expect_stated(const frame_colour& asked, const frame& found) {
  const auto format = found.pixel_format();
  const bool rgb = format == "rgb24" || format == "bgra";
  const bool full = rgb || format == "gray";
  const std::string_view matrix = rgb ? "gbr" : found.height() > 576 ? "bt709" : "smpte170m";
  const auto expect = [&](std::string_view wanted, std::string_view stated,
                          std::string_view taken) {
    if (wanted.empty()) return;
    EXPECT_EQ(plain_colour(stated == "unknown" ? taken : stated), plain_colour(wanted));
  };
  const auto colour = found.colour();
  expect(asked.matrix, colour.matrix, matrix);
  expect(asked.range, colour.range, full ? "pc" : "tv");
  expect(asked.primaries, colour.primaries, "");
  expect(asked.transfer, colour.transfer, "");
}

// One field of colours that is asked for.
struct asked_colour {
  const char* text;
  frame_colour colour;
};

static constexpr auto asked_colours = std::to_array<asked_colour>(
    {{"bt601", {.matrix = "smpte170m"}},
     {"pal", {.matrix = "bt470bg"}},
     {"bt709", {.matrix = "bt709"}},
     {"smpte240m", {.matrix = "smpte240m"}},
     {"fcc", {.matrix = "fcc"}},
     {"bt2020", {.matrix = "bt2020nc"}},
     {"tv", {.range = "tv"}},
     {"pc", {.range = "pc"}},
     {"wide", {.primaries = "bt2020"}},
     {"pq", {.transfer = "smpte2084"}},
     {"hdr",
      {.matrix = "bt2020nc", .primaries = "bt2020", .transfer = "smpte2084", .range = "pc"}}});

// Whether an encoder and a file state colours. If not, they are refused by name.
static bool accepts_colour(const coloured_encoder& each, const char* file, int height,
                           const asked_colour& asked) {
  auto options = options_of(each, height);
  options.colour = asked.colour;
  const auto path = media_directory / (std::string("asked.") + file);
  try {
    video_encoder encoder(options);
    write_encoded(path, encoder, colour_pictures(height > 576 ? 1 : 4, height, options.width));
  } catch (const error& refused) {
    EXPECT_THAT(
        std::string(refused.what()),
        AllOf(HasSubstr(each.encoder), AnyOf(HasSubstr("colour"), HasSubstr("full-range"))));
    return false;
  }
  const auto first = frames_of_file(path, stream_kind::video)[0];
  expect_stated(asked.colour, first);
  const auto matrix = asked.colour.matrix;
  const bool refused = matrix == "fcc" || matrix == "smpte240m";  // by to_tensor
  if (options.pixel_format == "gray") return true;  // whose luma is that of the matrix
  if (refused) {
    expect_colour_of_ffmpeg(path, first, false);
  } else {
    expect_colour(first, false);
  }
  return true;
}

static const std::map<std::string, std::string> expected_colours{
    {"libx264 mp4", "bt601 pal bt709 smpte240m fcc bt2020 tv pc wide pq hdr"},
    {"libx264 ts", "bt601 pal bt709 smpte240m fcc bt2020 tv pc wide pq hdr"},
    {"libx265 mkv", "bt601 pal bt709 smpte240m fcc bt2020 tv pc wide pq hdr"},
    {"libaom-av1 mp4", "bt601 pal bt709 smpte240m fcc bt2020 tv pc wide pq hdr"},
    {"libsvtav1 mkv", "bt601 pal bt709 smpte240m fcc bt2020 tv pc wide pq hdr"},
    {"libvpx webm", "bt601 pal tv wide pq"},
    {"libvpx avi", "bt601 pal tv"},
    {"libvpx-vp9 webm", "bt601 pal bt709 smpte240m bt2020 tv pc wide pq hdr"},
    {"libvpx-vp9 avi", "bt601 pal bt709 smpte240m bt2020 tv pc"},
    {"mpeg1video mpg", "bt601 pal tv"},
    {"mpeg2video ts", "bt601 pal bt709 smpte240m fcc bt2020 tv wide pq"},
    {"mpeg4 mp4", "bt601 pal bt709 smpte240m bt2020 tv pc wide pq hdr"},
    {"mpeg4 mov", "bt601 pal bt709 smpte240m bt2020 tv wide pq"},
    {"mpeg4 avi", "bt601 pal tv"},
    {"libtheora ogg", "bt601 pal tv"},
    {"mjpeg mov", "bt601 pal pc wide pq"},
    {"ffv1 mkv", "bt601 pal bt709 smpte240m fcc bt2020 tv pc wide pq hdr"},
    {"prores mov", "bt601 pal bt709 bt2020 tv wide pq"},
    {"png mov", "pc"}};

TEST(EncodedColours, EveryAcceptedColourSurvivesAndIsStated) {
  for (const auto& each : coloured_encoders)
    for (const char* file : each.files) {
      std::string accepted;
      for (const auto& asked : asked_colours) {
        SCOPED_TRACE(std::string(each.encoder) + " " + each.pixel_format + " in " + file + ": " +
                     asked.text);
        if (accepts_colour(each, file, each.least_height, asked))
          accepted.append(accepted.empty() ? "" : " ").append(asked.text);
      }
      const auto expected = expected_colours.find(std::string(each.encoder) + " " + file);
      const bool plain = each.pixel_format == std::string_view() &&
                         each.options != std::string_view("strict=unofficial");
      if (expected != expected_colours.end() && plain) {
        EXPECT_EQ(accepted, expected->second);
      }
    }
}

// What a file states of the colours that an encoder has by default.
static frame_colour stated_by_default(const stream_info& stream, const frame& found) {
  const auto& of = stream.parameters();
  const auto stated = found.colour();
  frame_colour colour{.matrix = av_color_space_name(of.color_space),
                      .range = av_color_range_name(of.color_range)};
  if (stated.primaries != "unknown") colour.primaries = av_color_primaries_name(of.color_primaries);
  if (stated.transfer != "unknown") colour.transfer = av_color_transfer_name(of.color_trc);
  return colour;
}

// FFmpeg's name of what an encoder makes, as a file has it.
static std::string codec_in_file(const stream_info& encoded) {
  const auto name = encoded.codec();
  if (name == "h263p") return "h263";
  return std::string(name == "ljpeg" ? "mjpeg" : name);
}

TEST(EncodedColours, EveryFileStatesTheParametersOfItsStreamAsFfprobeReadsThem) {
  for (const auto& each : coloured_encoders)
    for (const char* file : each.files) {
      SCOPED_TRACE(std::string(each.encoder) + " " + each.pixel_format + " in " + file);
      const auto path = media_directory / (std::string("parameters.") + file);
      const auto options = options_of(each, each.least_height);
      video_encoder encoder(options);
      write_encoded(path, encoder, colour_pictures(4, options.height, options.width));
      const auto frames = frames_of_file(path, stream_kind::video);
      ASSERT_EQ(frames.size(), 4U);
      expect_stated(stated_by_default(encoder.stream(), frames[0]), frames[0]);
      const auto colour = frames[0].colour();
      const auto probed = probe(path,
                                "-count_frames -show_entries stream=codec_name,width,height,"
                                "r_frame_rate,nb_read_frames:frame=pix_fmt,color_range,color_space,"
                                "color_primaries,color_transfer");
      EXPECT_THAT(probed, HasSubstr("codec_name=" + codec_in_file(encoder.stream()) +
                                    "\nwidth=256\nheight=" + std::to_string(options.height) +
                                    "\nr_frame_rate=25/1\nnb_read_frames=4\n"));
      EXPECT_THAT(probed, HasSubstr("pix_fmt=" + std::string(frames[0].pixel_format()) +
                                    "\ncolor_range=" + std::string(colour.range) +
                                    "\ncolor_space=" + std::string(colour.matrix) +
                                    "\ncolor_primaries=" + std::string(colour.primaries) +
                                    "\ncolor_transfer=" + std::string(colour.transfer) + "\n"));
    }
}

TEST(EncodedColours, AcceptedColoursSurviveInHighDefinition) {
  for (const auto& each : coloured_encoders)
    for (const auto& asked : asked_colours) {
      const std::string_view text = asked.text;
      if (text != "bt601" && text != "bt709" && text != "pc") continue;
      SCOPED_TRACE(std::string(each.encoder) + " " + each.pixel_format + " in " + each.files[0] +
                   ": " + asked.text);
      (void)accepts_colour(each, each.files[0], 720, asked);
    }
}

TEST(EncodedColours, RefusesColoursThatNeitherEncoderNorFileStates) {
  const auto expect = [](const char* encoder, const char* file, const frame_colour& colour,
                         const char* text) {
    EXPECT_THAT(
        [&] {
          video_encoder opened({.encoder = encoder,
                                .width = 1280,
                                .height = 720,
                                .frame_rate = 25,
                                .colour = colour});
          muxer target(media_directory / file);
          (void)target.add(opened.stream());
        },
        ThrowsMessage<error>(HasSubstr(text)));
  };
  expect("libvpx", "no.webm", {.matrix = "bt709"},
         "encode video (libvpx): the encoder does not state the colour.matrix bt709, but: bt470bg");
  expect("libvpx", "no.webm", {.range = "pc"},
         "encode video (libvpx): the encoder does not state the colour.range pc, but: tv");
  expect("mpeg2video", "no.mkv", {.range = "pc"},
         "encode video (mpeg2video): the encoder does not state the colour.range pc, but: tv");
  expect("libtheora", "no.ogg", {.primaries = "bt2020"},
         "does not state the colour.primaries bt2020, but: bt470bg bt470m");
  expect("mpeg4", "no.avi", {.range = "pc"},
         "no.avi: neither avi files nor the encoder mpeg4 state the colour.range pc");
  expect("mpeg4", "no.avi", {.matrix = "smpte170m"},
         "no.avi: neither avi files nor the encoder mpeg4 state the colour.matrix smpte170m");
  expect("mpeg4", "no.avi", {.transfer = "smpte2084"}, "state the colour.transfer smpte2084");
  expect("ffv1", "no.avi", {.primaries = "bt2020"}, "state the colour.primaries bt2020");
  const video_encode_options options{.encoder = "mjpeg",
                                     .width = 16,
                                     .height = 16,
                                     .frame_rate = 25,
                                     .pixel_format = "yuvj420p",
                                     .colour = {.range = "tv"}};
  EXPECT_THAT([&] { video_encoder opened(options); },
              ThrowsMessage<error>(HasSubstr("the colour range tv does not fit yuvj420p")));
}

static void open_with_colour(const frame_colour& colour) {
  video_encoder opened(
      {.encoder = "libx264", .width = 64, .height = 64, .frame_rate = 25, .colour = colour});
}

TEST(EncodedColours, RefusesNamesThatOnlyBeginAsOneOfFfmpeg) {
  const auto expect = [](const frame_colour& colour, const std::string& text) {
    EXPECT_THAT([&] { open_with_colour(colour); },
                ThrowsMessage<error>(HasSubstr("FFmpeg has no colour " + text)));
  };
  for (const char* name : {"bt709x", "bt470bgg", "bt2020ncl", "gbrz", "bt", "BT709"})
    expect({.matrix = name}, std::string("matrix ") + name);
  for (const char* name : {"bt709x", "smpte170m2", "filmy", "bt20", "Film"})
    expect({.primaries = name}, std::string("primaries ") + name);
  for (const char* name : {"linearly", "smpte2084x", "bt2020-100", "iec61966-2"})
    expect({.transfer = name}, std::string("transfer ") + name);
  for (const char* name : {"pcx", "tv709", "full", "p", "TV"})
    expect({.range = name}, std::string("range ") + name);
}

TEST(EncodedColours, TakesNamesThatFfmpegHas) {
  for (const char* name : {"bt709", "fcc", "bt470bg", "smpte240m", "bt2020nc", "unknown", ""})
    EXPECT_NO_THROW(open_with_colour({.matrix = name})) << name;
  for (const char* name : {"bt709", "bt470m", "film", "smpte432", "bt2020", "unknown", ""})
    EXPECT_NO_THROW(open_with_colour({.primaries = name})) << name;
  for (const char* name : {"linear", "log316", "iec61966-2-1", "bt2020-12", "arib-std-b67"})
    EXPECT_NO_THROW(open_with_colour({.transfer = name})) << name;
  for (const char* name : {"tv", "pc", "unknown", ""})
    EXPECT_NO_THROW(open_with_colour({.range = name})) << name;
}

static video_encode_options lossless_of_colour(const frame_colour& colour) {
  return {.encoder = "ffv1",
          .width = 64,
          .height = 64,
          .frame_rate = 25,
          .pixel_format = "yuv444p",
          .colour = colour};
}

static frame frame_of_colour(const frame_colour& colour) {
  const auto path = media_directory / "frame_of_colour.mkv";
  video_encoder encoder(lossless_of_colour(colour));
  write_encoded(path, encoder, colour_pictures(1, 64, 64));
  return frames_of_file(path, stream_kind::video)[0];
}

TEST(EncodedColours, RefusesFramesWhosePrimariesOrTransferAreNotThoseOfTheStream) {
  const auto expect = [](const frame_colour& of_frame, video_encode_options options,
                         const char* text) {
    video_encoder encoder(options);
    EXPECT_THAT([&] { encoder.send(frame_of_colour(of_frame)); },
                ThrowsMessage<error>(HasSubstr(text)));
  };
  const frame_colour hdr{.matrix = "bt2020nc", .primaries = "bt2020", .transfer = "smpte2084"};
  expect(hdr, lossless_of_colour({}),
         "encode video (ffv1): the frame states the primaries bt2020, the stream smpte170m, and "
         "they are not converted: set colour.primaries");
  expect(hdr, lossless_of_colour({.primaries = "bt2020"}),
         "the frame states the transfer smpte2084, the stream smpte170m, and they are not "
         "converted: set colour.transfer");
  expect({.matrix = "bt709"}, lossless_of_colour({}), "the primaries bt709, the stream smpte170m");
  expect({}, lossless_of_colour(hdr), "the primaries smpte170m, the stream bt2020");
  auto rgb = lossless_of_colour({});
  rgb.pixel_format = "bgr0";
  expect(hdr, rgb, "the primaries bt2020, the stream unknown");
}

TEST(EncodedColours, TakesFramesWhosePrimariesAndTransferMeanThoseOfTheStream) {
  const auto expect = [](const frame_colour& of_frame, const frame_colour& of_stream) {
    video_encoder encoder(lossless_of_colour(of_stream));
    EXPECT_NO_THROW(encoder.send(frame_of_colour(of_frame)))
        << of_frame.primaries << " " << of_frame.transfer;
  };
  const frame_colour hdr{
      .matrix = "bt2020nc", .primaries = "bt2020", .transfer = "smpte2084", .range = "pc"};
  expect(hdr, hdr);
  expect({.primaries = "smpte240m"}, {.primaries = "smpte170m"});
  for (const char* same : {"bt709", "smpte170m", "bt2020-10", "bt2020-12"})
    expect({.transfer = same}, {.transfer = "bt709"});
  expect({.matrix = "bt2020nc", .primaries = "bt2020", .transfer = "smpte2084", .range = "pc"},
         {.matrix = "bt709", .primaries = "bt2020", .transfer = "smpte2084", .range = "tv"});
}

TEST(EncodedColours, TakesFramesThatDoNotStatePrimariesAndTransfer) {
  const auto path = media_directory / "unstated.avi";
  video_encoder unstated(lossless_of_colour({}));
  write_encoded(path, unstated, colour_pictures(1, 64, 64));
  const auto frames = frames_of_file(path, stream_kind::video);
  ASSERT_EQ(frames[0].colour().primaries, "unknown");
  ASSERT_EQ(frames[0].colour().transfer, "unknown");
  video_encoder encoder(
      lossless_of_colour({.matrix = "bt2020nc", .primaries = "bt2020", .transfer = "smpte2084"}));
  EXPECT_NO_THROW(encoder.send(frames[0]));
}

TEST(EncodedColours, ReservedIsTreatedAsUnspecified) {
  const auto path = media_directory / "reserved.mkv";
  video_encoder encoder(lossless_of_colour({.matrix = "bt709", .primaries = "reserved"}));
  write_encoded(path, encoder, colour_pictures(1, 64, 64));
  EXPECT_EQ(frames_of_file(path, stream_kind::video)[0].colour().primaries, "bt709");
}

TEST(EncodedColours, MakesAPacketOfEveryFrame) {
  for (const auto& each : coloured_encoders) {
    SCOPED_TRACE(each.encoder);
    auto options = options_of(each, each.least_height);
    for (const std::int64_t n : {1, 2, 3, 17}) {
      video_encoder encoder(options);
      encoder.send(smooth_pictures(n, options.height, options.width));
      encoder.finish();
      std::int64_t packets = 0;
      std::optional<std::int64_t> last;
      while (auto next = encoder.receive()) {
        ++packets;
        EXPECT_LE(next->dts(), next->pts()) << n;
        EXPECT_TRUE(!last || next->dts() > last) << n;
        last = next->dts();
      }
      EXPECT_EQ(packets, n);
    }
  }
}

}  // namespace lade::media::encoded_colours_test
