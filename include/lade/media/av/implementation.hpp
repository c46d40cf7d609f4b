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
#include "../../../../media/av/byte_input.cpp"
#include "../../../../media/av/codec_pool.cpp"
#include "../../../../media/av/decoder.cpp"
#include "../../../../media/av/demuxer.cpp"
#include "../../../../media/av/format_reader.cpp"
#include "../../../../media/av/frame.cpp"
#include "../../../../media/av/frame_memory.cpp"
#include "../../../../media/av/lane_fft.cpp"
#include "../../../../media/av/log_mel.cpp"
#include "../../../../media/av/mel_filters.cpp"
#include "../../../../media/av/packet.cpp"
#include "../../../../media/av/rational.cpp"
#include "../../../../media/av/resampler.cpp"
#include "../../../../media/av/sample_sink.cpp"
#include "../../../../media/av/stream_info.cpp"
#include "../../../../media/av/swr_pool.cpp"
#include "../../../../media/av/window_reader.cpp"
