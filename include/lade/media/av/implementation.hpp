// The compiled part of lade-av. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
//   lade/media/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../../media/av/audio_encoder.cpp"
#include "../../../../media/av/av_options.cpp"
#include "../../../../media/av/byte_input.cpp"
#include "../../../../media/av/byte_output.cpp"
#include "../../../../media/av/codec_pool.cpp"
#include "../../../../media/av/decoder.cpp"
#include "../../../../media/av/decoding_times.cpp"
#include "../../../../media/av/demuxer.cpp"
#include "../../../../media/av/format_reader.cpp"
#include "../../../../media/av/format_writer.cpp"
#include "../../../../media/av/frame.cpp"
#include "../../../../media/av/frame_memory.cpp"
#include "../../../../media/av/muxer.cpp"
#include "../../../../media/av/open_encoder.cpp"
#include "../../../../media/av/output_io.cpp"
#include "../../../../media/av/packet.cpp"
#include "../../../../media/av/picture_converter.cpp"
#include "../../../../media/av/picture_source.cpp"
#include "../../../../media/av/rational.cpp"
#include "../../../../media/av/sample_converter.cpp"
#include "../../../../media/av/sample_source.cpp"
#include "../../../../media/av/save_image.cpp"
#include "../../../../media/av/stream_info.cpp"
#include "../../../../media/av/video_encoder.cpp"
#include "../../../../media/av/video_format.cpp"
#include "../../../../media/av/window_reader.cpp"
