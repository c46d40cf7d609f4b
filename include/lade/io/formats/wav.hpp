// WAV files as tensors: all samples or a window, or the header alone.
//
// Source of the format: Microsoft's "Multiple channel audio data and WAVE files" and RIFF; EBU Tech
// 3306 (RF64) and ITU-R BS.2088 (BW64) for more than 4 GiB.
//
// - PCM of 8, 16, 24 and 32 bits, and floats of 32 and 64 bits, also in WAVE_FORMAT_EXTENSIBLE.
//   Other encodings are refused as unsupported; the error contains their number.
// - The stated size of a frame must be that of its samples. The data must be complete and consist
//   of whole frames. Chunks before the data are skipped; a chunk of odd size has a byte of
//   padding.
// - A streamed file has a size of 0 or 0xffffffff for RIFF and data; its data reach to its end.
//   In other files, the size of RIFF and the bytes per second of the format are ignored.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/io/wav_header.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace lade::io {

struct wav_options {
  // The window: its begin and its length in seconds, rounded to the nearest frame. A window that
  // exceeds the end is shortened; it must not begin after the end.
  double offset_seconds = 0;
  double duration_seconds = std::numeric_limits<double>::infinity();

  // Whether samples are converted to f32. Integers of n bits are divided by 2^(n - 1), so the range
  // is [-1, 1); 128 is subtracted from u8 before.
  bool to_f32 = false;
};

// The functions below throw error(invalid_data) or error(unsupported) naming the file and, for a
// damaged header, the byte. They throw error(invalid_argument) for a window that is NaN or
// negative, or begins after the end.
//
// Samples are tensors [frames, channels] of the stored type: u8, i16, i32, f32 or f64. Samples of
// 24 bits become i32 with the same values, -8,388,608 to 8,388,607.

// Returns the contents of the header. Reads only the header, by ranges.
task<wav_info> read_wav_info(std::shared_ptr<const byte_reader> from);

// Returns the samples of a window. Reads only the header and the window. The tensor is a view if
// the file is in memory and its samples need no conversion; otherwise its memory is from the
// caller's pool.
task<tensor> read_wav(std::shared_ptr<const byte_reader> from, wav_options options = {});

// The same for a path or URL. They require a runtime.
task<wav_info> read_wav_info(std::string path);
task<tensor> read_wav(std::string path, wav_options options = {});

// The same for a file in memory. The samples are a view of `file` if they need no conversion and
// are aligned; otherwise a copy in memory of the calling stage. `name`: the name of the file in
// errors. Any thread may call them.
wav_info parse_wav_info(const buffer& file, std::string_view name);
tensor parse_wav(const buffer& file, std::string_view name, wav_options options = {});

// A function for map that parses the data of samples. It adds the fields "audio", a tensor [frames,
// channels], and "sample_rate", and removes the data.
//
//   lade::from(paths) | lade::map(lade::io::read) | lade::map(lade::io::decode_wav())
class decode_wav {
 public:
  explicit decode_wav(wav_options options = {}) noexcept : options_(options) {}

  // Throws as parse_wav does, naming the sample's key.
  sample operator()(sample from) const;

 private:
  wav_options options_;
};

}  // namespace lade::io
