// The compiled part of lade-av. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
//   lade/media/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../../media/av/audio.cpp"
#include "../../../../media/av/audio_converter.cpp"
#include "../../../../media/av/audio_source.cpp"
#include "../../../../media/av/av_options.cpp"
#include "../../../../media/av/box_headers.cpp"
#include "../../../../media/av/byte_input.cpp"
#include "../../../../media/av/clip.cpp"
#include "../../../../media/av/codec_pool.cpp"
#include "../../../../media/av/convert.cpp"
#include "../../../../media/av/decoder.cpp"
#include "../../../../media/av/demuxer.cpp"
#include "../../../../media/av/format_reader.cpp"
#include "../../../../media/av/frame.cpp"
#include "../../../../media/av/frame_memory.cpp"
#include "../../../../media/av/index_format.cpp"
#include "../../../../media/av/load_video.cpp"
#include "../../../../media/av/packet.cpp"
#include "../../../../media/av/packet_filter.cpp"
#include "../../../../media/av/packet_format.cpp"
#include "../../../../media/av/packet_index.cpp"
#include "../../../../media/av/rational.cpp"
#include "../../../../media/av/resampler.cpp"
#include "../../../../media/av/sample_sink.cpp"
#include "../../../../media/av/stored_stream.cpp"
#include "../../../../media/av/stored_values.cpp"
#include "../../../../media/av/stream_info.cpp"
#include "../../../../media/av/swr_pool.cpp"
#include "../../../../media/av/video.cpp"
#include "../../../../media/av/video_scan.cpp"
#include "../../../../media/av/window_reader.cpp"
