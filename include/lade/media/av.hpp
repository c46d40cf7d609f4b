// Support for code that uses FFmpeg's C API: owning pointers, and errors as exceptions.

#pragma once

#include <lade/error.hpp>

#include <memory>
#include <new>
#include <string_view>
#include <system_error>

struct AVBSFContext;
struct AVBufferRef;
struct AVCodecContext;
struct AVCodecParameters;
struct AVDictionary;
struct AVFrame;
struct AVPacket;

namespace lade::media {

// Frees an object by FFmpeg's function for its type.
struct av_deleter {
  void operator()(AVBSFContext* freed) const noexcept;
  void operator()(AVBufferRef* freed) const noexcept;
  void operator()(AVCodecContext* freed) const noexcept;
  void operator()(AVCodecParameters* freed) const noexcept;
  void operator()(AVDictionary* freed) const noexcept;
  void operator()(AVFrame* freed) const noexcept;
  void operator()(AVPacket* freed) const noexcept;
};

using av_bsf_context = std::unique_ptr<AVBSFContext, av_deleter>;
using av_buffer = std::unique_ptr<AVBufferRef, av_deleter>;
using av_codec_context = std::unique_ptr<AVCodecContext, av_deleter>;
using av_codec_parameters = std::unique_ptr<AVCodecParameters, av_deleter>;
using av_dictionary = std::unique_ptr<AVDictionary, av_deleter>;
using av_frame = std::unique_ptr<AVFrame, av_deleter>;
using av_packet = std::unique_ptr<AVPacket, av_deleter>;

// The category of FFmpeg's error codes (AVERROR_...). Codes that FFmpeg derives from errno are
// equal to conditions of the system: AVERROR(ENOSPC) to std::errc::no_space_on_device.
const std::error_category& av_category() noexcept;

// Returns the code of a negative result of FFmpeg: one of av_category, except for
// - AVERROR_INVALIDDATA: errc::invalid_data
// - AVERROR_PATCHWELCOME: errc::unsupported
// - AVERROR_EXIT, by which lade interrupts FFmpeg: errc::stopped
std::error_code av_error_code(int result) noexcept;

// Returns `result` if it is not negative. Otherwise throws error(av_error_code(result)) with
// FFmpeg's message.
int check_av(int result, std::string_view doing);

// Returns the object that FFmpeg allocated. Throws std::bad_alloc if it is null.
template <class T>
T* check_av(T* allocated) {
  if (allocated == nullptr) throw std::bad_alloc();
  return allocated;
}

}  // namespace lade::media
