// FFmpeg's I/O context over a byte_output.

#pragma once

#include "byte_output.hpp"
#include "compat.hpp"
#include "format_reader.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

// The output of a muxer. Muxers may read their output again (movflags=+faststart moves the
// packets); they open nothing else. One thread at a time.
class output_io {
 public:
  // `name`: the URL of the muxer. The output must outlive the object.
  output_io(byte_output& output, std::string name);
  output_io(const output_io&) = delete;
  output_io& operator=(const output_io&) = delete;

  // Makes a muxer write here. The object must outlive the muxer.
  void attach(AVFormatContext& muxer);

  // Flushes FFmpeg's buffer. Returns FFmpeg's first error.
  int flush();

  // The first exception of the output since the last call; null if there is none.
  std::exception_ptr take_failure() noexcept;

 private:
  struct reading;

  static int write_bytes(void* self, written_byte* from, int bytes) noexcept;
  static std::int64_t seek_bytes(void* self, std::int64_t offset, int whence) noexcept;
  static int read_again(void* from, std::uint8_t* into, int bytes) noexcept;
  static std::int64_t seek_again(void* from, std::int64_t offset, int whence) noexcept;
  static int open_again(AVFormatContext* format, AVIOContext** opened, const char* url, int flags,
                        AVDictionary** options) noexcept;
  static int close_again(AVFormatContext* format, AVIOContext* io) noexcept;

  byte_output& output_;
  std::string name_;
  std::uint64_t position_ = 0;
  std::exception_ptr failure_;
  std::unique_ptr<AVIOContext, av_format_deleter> io_;
};

}  // namespace lade::media
