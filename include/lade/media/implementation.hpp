// The compiled part of lade-media. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../media/av.cpp"
#include "../../../media/av1_header.cpp"
#include "../../../media/avif_items.cpp"
#include "../../../media/avif_reader.cpp"
#include "../../../media/bmp_reader.cpp"
#include "../../../media/crop.cpp"
#include "../../../media/decoders.cpp"
#include "../../../media/exif.cpp"
#include "../../../media/frame_reader.cpp"
#include "../../../media/gif_reader.cpp"
#include "../../../media/image.cpp"
#include "../../../media/image_memory.cpp"
#include "../../../media/image_reader.cpp"
#include "../../../media/jpeg_arrays.cpp"
#include "../../../media/jpeg_reader.cpp"
#include "../../../media/picture.cpp"
#include "../../../media/picture_planes.cpp"
#include "../../../media/pixel_writer.cpp"
#include "../../../media/png.cpp"
#include "../../../media/png_reader.cpp"
#include "../../../media/png_text.cpp"
#include "../../../media/pnm_reader.cpp"
#include "../../../media/resize.cpp"
#include "../../../media/resize_avx2.cpp"
#include "../../../media/resize_avx512.cpp"
#include "../../../media/resize_axis.cpp"
#include "../../../media/resize_kernels.cpp"
#include "../../../media/resizer.cpp"
#include "../../../media/tiff_page.cpp"
#include "../../../media/tiff_reader.cpp"
#include "../../../media/tiff_tags.cpp"
#include "../../../media/webp_reader.cpp"
