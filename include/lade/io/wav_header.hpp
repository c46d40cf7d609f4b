// The header of WAV files and the conversion of their samples. Parsers of arrays
// (lade/io/formats/wav.hpp, which cites the format) and of media share it.

#pragma once

#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lade::io {

// The type of stored samples: unsigned 8 bits, signed 16 to 32 bits, or floats.
enum class wav_encoding : std::uint8_t { u8, i16, i24, i32, f32, f64 };

// The contents of the header of a WAV file.
struct wav_info {
  wav_encoding encoding = wav_encoding::i16;
  std::uint16_t channels = 0;
  std::uint32_t sample_rate = 0;   // frames per second
  std::uint64_t frames = 0;        // samples of each channel
  std::uint64_t data_offset = 0;   // position of the first frame in the file
  std::uint32_t channel_mask = 0;  // speakers, as in WAVEFORMATEXTENSIBLE; 0 if unknown

  double seconds() const noexcept { return static_cast<double>(frames) / sample_rate; }
};

// Parses the chunks of a file part by part; the caller reads the parts:
//
//   wav_header header(size, name);
//   while (header.needs_bytes()) header.take(bytes from header.offset() on);
//   header.info()
class wav_header {
 public:
  // Sufficient size of a part in bytes. The last part of a file may be shorter.
  static constexpr std::size_t part_bytes = 128;

  wav_header(std::uint64_t size, std::string_view name) noexcept : size_(size), name_(name) {}

  bool needs_bytes() const noexcept { return !data_found_; }
  std::uint64_t offset() const noexcept { return offset_; }

  // Parses the chunks whose headers are in `part`, the bytes from offset() on. Throws
  // error(invalid_data) or error(unsupported).
  void take(std::span<const std::byte> part);

  const wav_info& info() const noexcept { return info_; }

 private:
  void take_riff(std::span<const std::byte> part);
  void take_chunk(std::span<const std::byte> part);
  void take_format(std::span<const std::byte> chunk);
  void take_data(std::uint64_t bytes);
  std::uint64_t bytes_of_data(std::uint32_t stored) const;
  void require(std::uint64_t bytes, std::span<const std::byte> part, std::string_view what) const;
  [[noreturn]] void refuse(std::string_view why) const;

  std::uint64_t size_;
  std::string_view name_;
  std::uint64_t offset_ = 0;  // position of the next chunk in the file
  bool is_wide_ = false;      // RF64 or BW64
  bool is_streamed_ = false;
  bool format_found_ = false;
  bool data_found_ = false;
  std::optional<std::uint64_t> wide_bytes_;  // size of the data in RF64
  wav_info info_;
};

std::size_t wav_frame_bytes(const wav_info& info) noexcept;

// Converts samples to the elements of `into`, which must have as many elements as there are
// samples. The type of `into` is f32, or the type of the samples: i32 for i24.
void convert_wav(wav_encoding encoding, std::span<const std::byte> samples, const tensor& into);

}  // namespace lade::io
