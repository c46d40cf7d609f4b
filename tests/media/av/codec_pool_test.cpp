#include "../../../media/av/codec_pool.hpp"

#include "../../../media/av/stream_fields.hpp"

#include "media_files.hpp"

#include <lade/media/av/demuxer.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace lade::media::codec_pool_test {

// The context that a decoder of this file's best stream takes, and leaves for the next.
static const AVCodecContext* context_for(const std::string& path, stream_kind kind,
                                         const decode_options& options = {}) {
  const demuxer file(read_bytes(path), path);
  return pooled_codec::acquire(file.best(kind).parameters(), options, {1, 90'000}, "test").get();
}

TEST(CodecPool, ADecoderReusesTheContextOfEqualParameters) {
  for (const char* name : {"h264.mp4", "hevc.mp4", "vp8.webm", "vp9.webm", "av1.mp4"}) {
    const auto path = video_path(video_recipe(name));
    const auto* first = context_for(path, stream_kind::video);
    EXPECT_EQ(context_for(path, stream_kind::video), first) << name;
  }
  for (const auto& recipe : {media_recipe{"flac.flac", "-c:a flac"},
                             {"alac.m4a", "-c:a alac"},
                             {"vorbis.ogg", "-c:a libvorbis"},
                             {"mp3.mp3", "-c:a libmp3lame"},
                             {"big.mov", "-c:a pcm_s16be"}}) {
    const auto path = audio_path(recipe);
    const auto* first = context_for(path, stream_kind::audio);
    EXPECT_EQ(context_for(path, stream_kind::audio), first) << recipe;
  }
}

TEST(CodecPool, OtherParametersOrOptionsHaveAnotherContext) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto* first = context_for(path, stream_kind::video);
  const auto other = video_path({"other.mp4", "-vf scale=64:48 -c:v libx264 -pix_fmt yuv420p"});
  EXPECT_NE(context_for(other, stream_kind::video), first);
  EXPECT_NE(context_for(path, stream_kind::video, {.threads = 2}), first);
  EXPECT_NE(context_for(path, stream_kind::video, {.damage = damage_policy::tolerate}), first);
  EXPECT_NE(context_for(path, stream_kind::video, {.options = "skip_frame=nokey"}), first);
  EXPECT_EQ(context_for(path, stream_kind::video), first);
}

// What a context is opened with.
struct codec_request {
  av_codec_parameters parameters;
  decode_options options = {};
  AVRational time_base{1, 90'000};

  // The context that a decoder takes, and leaves for the next.
  const AVCodecContext* context() const {
    return pooled_codec::acquire(*parameters, options, time_base, "test").get();
  }
};

static codec_request request_for(const std::string& path, stream_kind kind) {
  const demuxer file(read_bytes(path), path);
  return {copy_parameters(file.best(kind).parameters())};
}

using parameter_change = std::pair<std::string_view, std::function<void(AVCodecParameters&)>>;

// A context for parameters with one change is another, and that of the others stays for them.
static void expect_another_context(const std::string& path, stream_kind kind,
                                   const parameter_change& change) {
  pooled_codec::release_idle();
  const auto request = request_for(path, kind);
  auto changed = request_for(path, kind);
  change.second(*changed.parameters);
  const auto* first = request.context();
  EXPECT_NE(changed.context(), first) << change.first;
  EXPECT_EQ(request.context(), first) << change.first;
}

TEST(CodecPool, AVideoWithOneOtherParameterHasAnotherContext) {
  using parameters = AVCodecParameters;
  const auto path = video_path(video_recipe("h264.mp4"));
  for (const auto& change :
       {parameter_change{"tag", [](parameters& of) { of.codec_tag += 1; }},
        {"format", [](parameters& of) { of.format = AV_PIX_FMT_YUV422P; }},
        {"width", [](parameters& of) { of.width += 16; }},
        {"height", [](parameters& of) { of.height += 16; }},
        {"profile", [](parameters& of) { of.profile += 1; }},
        {"level", [](parameters& of) { of.level += 1; }},
        {"order of fields", [](parameters& of) { of.field_order = AV_FIELD_TT; }},
        {"range", [](parameters& of) { of.color_range = AVCOL_RANGE_JPEG; }},
        {"primaries", [](parameters& of) { of.color_primaries = AVCOL_PRI_BT2020; }},
        {"transfer", [](parameters& of) { of.color_trc = AVCOL_TRC_SMPTE2084; }},
        {"matrix", [](parameters& of) { of.color_space = AVCOL_SPC_BT2020_NCL; }},
        {"siting", [](parameters& of) { of.chroma_location = AVCHROMA_LOC_BOTTOM; }},
        {"delay", [](parameters& of) { of.video_delay += 1; }},
        {"bits", [](parameters& of) { of.bits_per_coded_sample += 1; }},
        {"raw bits", [](parameters& of) { of.bits_per_raw_sample += 1; }},
        {"numerator of the aspect", [](parameters& of) { of.sample_aspect_ratio.num += 6; }},
        {"denominator of the aspect", [](parameters& of) { of.sample_aspect_ratio.den += 6; }},
        {"bit rate", [](parameters& of) { of.bit_rate += 1; }},
        {"last byte of the extradata",
         [](parameters& of) { *(of.extradata + of.extradata_size - 1) ^= 1; }},
        {"length of the extradata", [](parameters& of) { of.extradata_size -= 1; }}})
    expect_another_context(path, stream_kind::video, change);
}

TEST(CodecPool, AudioWithOneOtherParameterHasAnotherContext) {
  using parameters = AVCodecParameters;
  const auto path = audio_path({"pcm.mov", "-c:a pcm_s16le"});
  for (const auto& change :
       {parameter_change{"codec", [](parameters& of) { of.codec_id = AV_CODEC_ID_PCM_S16BE; }},
        {"rate", [](parameters& of) { of.sample_rate += 1; }},
        {"alignment", [](parameters& of) { of.block_align += 4; }},
        {"frame", [](parameters& of) { of.frame_size += 1; }},
        {"padding", [](parameters& of) { of.initial_padding += 1; }},
        {"padding at the end", [](parameters& of) { of.trailing_padding += 1; }},
        {"seeking", [](parameters& of) { of.seek_preroll += 1; }},
        {"number of channels", [](parameters& of) { av_channel_layout_default(&of.ch_layout, 1); }},
        {"channels", [](parameters& of) { of.ch_layout.u.mask = AV_CH_LAYOUT_STEREO_DOWNMIX; }},
        {"order of channels",
         [](parameters& of) { of.ch_layout.order = AV_CHANNEL_ORDER_UNSPEC; }}})
    expect_another_context(path, stream_kind::audio, change);
}

TEST(CodecPool, OtherOptionsOrTimeBasesHaveAnotherContext) {
  pooled_codec::release_idle();
  auto request = request_for(video_path(video_recipe("h264.mp4")), stream_kind::video);
  const auto* first = request.context();
  const auto expect_another = [&](auto change, std::string_view what) {
    auto changed = request_for(video_path(video_recipe("h264.mp4")), stream_kind::video);
    change(changed);
    EXPECT_NE(changed.context(), first) << what;
    EXPECT_EQ(request.context(), first) << what;
  };
  expect_another([](auto& of) { of.options.max_pixels = 1 << 20; }, "max_pixels");
  expect_another([](auto& of) { of.options.decoder = "h264"; }, "decoder");
  expect_another([](auto& of) { of.options.options = "skip_frame=nokey"; }, "options");
  expect_another([](auto& of) { of.options.threads = 2; }, "threads");
  expect_another([](auto& of) { of.options.damage = damage_policy::tolerate; }, "damage");
  expect_another([](auto& of) { of.time_base.num = 2; }, "numerator of the time base");
  expect_another([](auto& of) { of.time_base.den = 90'001; }, "denominator of the time base");
}

TEST(CodecPool, ANamedDecoderReusesNoContextOfAnother) {
  for (const auto& [file, name] : {std::pair("vp8.webm", "libvpx"), {"vp9.webm", "libvpx-vp9"}}) {
    if (avcodec_find_decoder_by_name(name) == nullptr) continue;
    auto request = request_for(video_path(video_recipe(file)), stream_kind::video);
    const auto codec_name = [&](const char* decoder) -> std::string_view {
      request.options.decoder = decoder;
      return pooled_codec::acquire(*request.parameters, request.options, {1, 1'000}, "test")
          ->codec->name;
    };
    EXPECT_NE(codec_name(""), name);
    EXPECT_EQ(codec_name(name), name);
    EXPECT_NE(codec_name(""), name);
  }
}

TEST(CodecPool, DecodersThatAreUsedAtOnceHaveSeparateContexts) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const demuxer file(read_bytes(path), path);
  const auto& parameters = file.best(stream_kind::video).parameters();
  const auto first = pooled_codec::acquire(parameters, {}, {1, 90'000}, "test");
  const auto second = pooled_codec::acquire(parameters, {}, {1, 90'000}, "test");
  EXPECT_NE(first.get(), second.get());
}

}  // namespace lade::media::codec_pool_test
