// The compiled part of lade's media module. To use it without building a library, include this in
// exactly one .cpp file of the program, beside lade/implementation.hpp.

#pragma once

#include "../../../media/av.cpp"
#include "../../../media/crop.cpp"
#include "../../../media/exif.cpp"
#include "../../../media/frame_reader.cpp"
#include "../../../media/gif.cpp"
#include "../../../media/image.cpp"
#include "../../../media/jpeg_reader.cpp"
#include "../../../media/pixel_writer.cpp"
#include "../../../media/png.cpp"
#include "../../../media/resize.cpp"
#include "../../../media/resize_avx2.cpp"
#include "../../../media/resize_avx512.cpp"
#include "../../../media/resize_axis.cpp"
#include "../../../media/resize_kernels.cpp"
#include "../../../media/resizer.cpp"
#include "../../../media/webp_colour.cpp"
