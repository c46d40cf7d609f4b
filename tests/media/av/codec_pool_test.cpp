#include "../../../media/av/codec_pool.hpp"

#include "media_files.hpp"

#include <lade/media/av/demuxer.hpp>

#include <gtest/gtest.h>

#include <string>

namespace lade::media {

// The context that a decoder of this file's best stream takes, and leaves for the next.
static const AVCodecContext* context_for(const std::string& path, stream_kind kind,
                                         const decode_options& options = {}) {
  const demuxer file(read_bytes(path), path);
  return pooled_codec::acquire(file.best(kind).parameters(), options, {1, 90'000}, "test").get();
}

TEST(CodecPool, ADecoderTakesTheContextThatOneOfEqualParametersLeft) {
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

TEST(CodecPool, ADecoderOfOtherParametersOrOptionsHasItsOwn) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const auto* first = context_for(path, stream_kind::video);
  const auto other = video_path({"other.mp4", "-vf scale=64:48 -c:v libx264 -pix_fmt yuv420p"});
  EXPECT_NE(context_for(other, stream_kind::video), first);
  EXPECT_NE(context_for(path, stream_kind::video, {.threads = 2}), first);
  EXPECT_NE(context_for(path, stream_kind::video, {.damage = damage_policy::tolerate}), first);
  EXPECT_NE(context_for(path, stream_kind::video, {.options = "skip_frame=nokey"}), first);
  EXPECT_EQ(context_for(path, stream_kind::video), first);
}

TEST(CodecPool, DecodersThatAreUsedAtOnceHaveTheirOwn) {
  const auto path = video_path(video_recipe("h264.mp4"));
  const demuxer file(read_bytes(path), path);
  const auto& parameters = file.best(stream_kind::video).parameters();
  const auto first = pooled_codec::acquire(parameters, {}, {1, 90'000}, "test");
  const auto second = pooled_codec::acquire(parameters, {}, {1, 90'000}, "test");
  EXPECT_NE(first.get(), second.get());
}

}  // namespace lade::media
