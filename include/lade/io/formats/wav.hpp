// WAV files: their header alone, all samples, or a window of them, as tensors.
//
// Source of the format: Microsoft's "Multiple channel audio data and WAVE files" and RIFF; EBU Tech
// 3306 (RF64) and ITU-R BS.2088 (BW64) for more than 4 GiB.
//
// - PCM of 8, 16, 24 and 32 bits, and floats of 32 and 64 bits, also in WAVE_FORMAT_EXTENSIBLE.
//   Other encodings are refused as unsupported, with their number.
// - The bytes of a frame must be those of its samples. The data must all be there and consist of
//   whole frames. Chunks before the data are passed over; those of an odd size have a byte of
//   padding.
// - A file that was streamed has a size of 0 or 0xffffffff for RIFF and data: its data reach to its
//   end. Otherwise the size of RIFF, and the bytes per second of the format, are not looked at.

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
  // The window: where it begins, and how long it is, rounded to the nearest frame. It may reach
  // beyond the end, where it is shorter, but not begin there.
  double offset_seconds = 0;
  double duration_seconds = std::numeric_limits<double>::infinity();

  // Converts samples to f32: integers are divided by 2 to the number of their bits less 1, which
  // makes them [-1, 1); of u8, 128 is subtracted before.
  bool to_f32 = false;
};

// These throw error(invalid_data) or error(unsupported) naming the file and, of a damaged header,
// the byte; and error(invalid_argument) for a window that is no number, is negative, or begins
// behind the end.
//
// Samples are tensors [frames, channels] of the type in which they are stored: u8, i16, i32, f32,
// f64. Samples of 24 bits become i32 of the same values, -8,388,608 to 8,388,607.

// What a header says. Reads only the header, by ranges.
task<wav_info> read_wav_info(std::shared_ptr<const byte_reader> from);

// The samples of a window, which alone is read besides the header. The tensor is in memory of the
// caller's pool, or a view if the file is in memory and its samples are as they must be.
task<tensor> read_wav(std::shared_ptr<const byte_reader> from, wav_options options = {});

// The same of a file. Require a runtime.
task<wav_info> read_wav_info(std::string path);
task<tensor> read_wav(std::string path, wav_options options = {});

// The same of a file in memory: the header, and the samples as a view of `file` if they are stored
// in the tensor's type and are aligned, else in memory of the stage that calls. Any thread may call
// them.
wav_info parse_wav_info(const buffer& file, std::string_view name);
tensor parse_wav(const buffer& file, std::string_view name, wav_options options = {});

// A stage's function that parses the data of samples: they get the fields "audio", a tensor
// [frames, channels], and "sample_rate", and the data are dropped.
//
//   lade::from(paths) | lade::map(lade::io::read) | lade::map(lade::io::decode_wav())
class decode_wav {
 public:
  explicit decode_wav(wav_options options = {}) noexcept : options_(options) {}

  // Throws what parse_wav throws, naming the sample's key.
  sample operator()(sample from) const;

 private:
  wav_options options_;
};

}  // namespace lade::io
