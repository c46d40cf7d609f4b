// The compiled part of lade-nvdec. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
//   lade/media/implementation.hpp
//   lade/media/av/implementation.hpp
//   lade/cuda/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../../cuda/nvdec/capabilities.cpp"
#include "../../../../cuda/nvdec/clip_decoder.cpp"
#include "../../../../cuda/nvdec/clip_writer.cpp"
#include "../../../../cuda/nvdec/context.cpp"
#include "../../../../cuda/nvdec/decode_clip.cpp"
#include "../../../../cuda/nvdec/decode_clips.cpp"
#include "../../../../cuda/nvdec/decoder_cache.cpp"
#include "../../../../cuda/nvdec/elementary_stream.cpp"
#include "../../../../cuda/nvdec/known_colours.cpp"
#include "../../../../cuda/nvdec/nvcuvid_api.cpp"
#include "../../../../cuda/nvdec/picture_colours.cpp"
#include "../../../../cuda/nvdec/sessions.cpp"
#include "../../../../cuda/nvdec/surface_decoder.cpp"
#include "../../../../cuda/nvdec/surfaces.cpp"
