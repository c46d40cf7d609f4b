// Pictures as they are shown: turned and mirrored.

#pragma once

#include "picture_converter.hpp"

#include <lade/media/av.hpp>
#include <lade/media/av/stream_info.hpp>

#include <utility>

namespace lade::media {

// Width and height of a picture of the size when it is shown.
std::pair<int, int> shown_size(int width, int height, display_orientation orientation) noexcept;

// The format in which to turn a picture that is to have the other one: pixels lie at whole bytes,
// and each has its own chroma.
AVPixelFormat format_to_turn(AVPixelFormat to) noexcept;

// A copy of a picture in a format_to_turn, as it is shown.
av_frame shown_picture(const AVFrame& stored, display_orientation orientation);

}  // namespace lade::media
