#include <lade/media/av/muxer.hpp>

#include "encoded.hpp"

#include <gmock/gmock.h>

namespace lade::media {

using testing::HasSubstr;

TEST(Muxer, RefusesAFormatOfSeveralFiles) {
  EXPECT_THAT(
      [] { muxer(media_directory / "list.m3u8"); },
      testing::ThrowsMessage<error>(HasSubstr("the format hls is not one of single files")));
}

}  // namespace lade::media
