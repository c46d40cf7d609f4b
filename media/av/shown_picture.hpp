// Turns and mirrors pictures for display.

#pragma once

#include "picture_converter.hpp"

#include <lade/media/av.hpp>
#include <lade/media/av/stream_info.hpp>

#include <utility>

namespace lade::media {

// The width and height at which a picture is displayed.
std::pair<int, int> shown_size(int width, int height, display_orientation orientation) noexcept;

// The format in which to turn a picture that will be converted to `to`: each pixel has whole bytes
// and its own chroma.
AVPixelFormat format_to_turn(AVPixelFormat to) noexcept;

// A copy of a picture in a format_to_turn, turned for display.
av_frame shown_picture(const AVFrame& stored, display_orientation orientation);

}  // namespace lade::media
