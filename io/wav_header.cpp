#include <lade/error.hpp>
#include <lade/io/wav_header.hpp>
#include <lade/support/little_endian.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace lade::io {

static constexpr std::uint32_t wav_unknown_bytes = 0xffffffff;

static std::string_view wav_text(std::span<const std::byte> bytes, std::size_t at,
                                 std::size_t length) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()) + at, length};
}

void wav_header::refuse(std::string_view why) const {
  throw error(errc::invalid_data, "read " + std::string(name_),
              fmt::format("{} (at byte {})", why, offset_));
}

// Throws unless `part` has `bytes` bytes.
void wav_header::require(std::uint64_t bytes, std::span<const std::byte> part,
                         std::string_view what) const {
  if (bytes > part.size()) refuse("it ends in " + std::string(what));
}

void wav_header::take(std::span<const std::byte> part) {
  auto begin = offset_;
  bool is_rest = part.size() == size_ - begin;
  if (begin == 0) take_riff(part);
  while (needs_bytes()) {
    if (offset_ >= size_) refuse("it ends before its data");
    auto passed = offset_ - begin;
    if (passed >= part.size() || (!is_rest && part.size() - passed < part_bytes)) return;
    take_chunk(part.subspan(static_cast<std::size_t>(passed)));
  }
}

void wav_header::take_riff(std::span<const std::byte> part) {
  require(12, part, "the header of RIFF");
  auto mark = wav_text(part, 0, 4);
  if (mark == "RIFX")
    throw error(errc::unsupported, "read " + std::string(name_), "RIFX is not supported");
  is_wide_ = mark == "RF64" || mark == "BW64";
  if ((mark != "RIFF" && !is_wide_) || wav_text(part, 8, 4) != "WAVE")
    refuse("it does not begin as a WAV file does");
  auto bytes = support::load_little<std::uint32_t>(part.data() + 4);
  is_streamed_ = !is_wide_ && (bytes == 0 || bytes == wav_unknown_bytes);
  offset_ = 12;
}

void wav_header::take_chunk(std::span<const std::byte> part) {
  require(8, part, "the header of a chunk");
  auto mark = wav_text(part, 0, 4);
  auto bytes = support::load_little<std::uint32_t>(part.data() + 4);
  part = part.subspan(8);
  if (mark == "data") {
    offset_ += 8;
    return take_data(bytes_of_data(bytes));
  }
  if (mark == "ds64" && is_wide_) {
    require(24, part, "its ds64 chunk");
    wide_bytes_ = support::load_little<std::uint64_t>(part.data() + 8);
  } else if (mark == "fmt ") {
    auto known = std::min<std::size_t>(bytes, 40);
    require(known, part, "its format");
    take_format(part.first(known));
  }
  offset_ += 8 + std::uint64_t{bytes} + bytes % 2;
}

// The encoding for a format tag and the bits per sample.
static std::optional<wav_encoding> wav_encoding_of(unsigned tag, unsigned bits) noexcept {
  using enum wav_encoding;
  constexpr unsigned pcm = 1;
  constexpr unsigned floats = 3;
  if (tag == floats && bits == 32) return f32;
  if (tag == floats && bits == 64) return f64;
  if (tag != pcm || bits % 8 != 0 || bits < 8 || bits > 32) return std::nullopt;
  constexpr wav_encoding integers[]{u8, i16, i24, i32};
  return integers[bits / 8 - 1];
}

void wav_header::take_format(std::span<const std::byte> chunk) {
  constexpr unsigned extensible = 0xfffe;
  constexpr std::string_view rest_of_guid("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
  if (format_found_) refuse("it has two formats");
  format_found_ = true;
  if (chunk.size() < 16) refuse(fmt::format("its format has only {} bytes", chunk.size()));
  auto u16 = [&](std::size_t at) { return support::load_little<std::uint16_t>(chunk.data() + at); };
  unsigned tag = u16(0);
  unsigned bits = u16(14);
  if (tag == extensible) {
    if (chunk.size() < 40) refuse("its extensible format is cut off");
    if (wav_text(chunk, 26, 14) != rest_of_guid)
      throw error(errc::unsupported, "read " + std::string(name_),
                  "an extensible encoding that is not Microsoft's is not supported");
    tag = u16(24);
    info_.channel_mask = support::load_little<std::uint32_t>(chunk.data() + 20);
  }
  auto encoding = wav_encoding_of(tag, bits);
  if (!encoding)
    throw error(errc::unsupported, "read " + std::string(name_),
                fmt::format("encoding {} with samples of {} bits is not supported", tag, bits));
  info_.encoding = *encoding;
  info_.channels = u16(2);
  info_.sample_rate = support::load_little<std::uint32_t>(chunk.data() + 4);
  if (info_.channels == 0) refuse("it has no channels");
  if (info_.sample_rate == 0) refuse("its sample rate is 0");
  if (u16(12) != wav_frame_bytes(info_))
    refuse(fmt::format("it states frames of {} bytes; {} samples of {} bits have {}", u16(12),
                       info_.channels, bits, wav_frame_bytes(info_)));
}

// The number of data bytes from offset_ on. Throws if the file does not have them.
std::uint64_t wav_header::bytes_of_data(std::uint32_t stored) const {
  auto there = size_ - offset_;
  if (is_streamed_ && (stored == 0 || stored == wav_unknown_bytes)) return there;
  std::uint64_t bytes = stored;
  if (is_wide_ && stored == wav_unknown_bytes) {
    if (!wide_bytes_) refuse("its ds64 chunk is missing");
    bytes = *wide_bytes_;
  }
  if (bytes > there) refuse(fmt::format("its data claim {} bytes, and {} follow", bytes, there));
  return bytes;
}

void wav_header::take_data(std::uint64_t bytes) {
  if (!format_found_) refuse("its data come before their format");
  auto frame = wav_frame_bytes(info_);
  if (bytes % frame != 0)
    refuse(fmt::format("its data of {} bytes are no whole frames of {}", bytes, frame));
  info_.frames = bytes / frame;
  info_.data_offset = offset_;
  data_found_ = true;
}

static std::size_t wav_sample_bytes(wav_encoding encoding) noexcept {
  constexpr std::uint8_t bytes[]{1, 2, 3, 4, 4, 8};
  return bytes[static_cast<std::size_t>(encoding)];
}

std::size_t wav_frame_bytes(const wav_info& info) noexcept {
  return info.channels * wav_sample_bytes(info.encoding);
}

// Functions that load one sample of each encoding.
static std::int32_t load_i24(const std::byte* from) noexcept {
  auto low = static_cast<std::uint32_t>(support::load_little<std::uint16_t>(from));
  auto all = low << 8 | std::to_integer<std::uint32_t>(from[2]) << 24;
  return static_cast<std::int32_t>(all) >> 8;
}

// Converts in blocks of constant size on local copies without aliases: compilers vectorise such
// loops also at -O2.
template <std::size_t Bytes, class T, class F>
static void convert_wav_samples(std::span<const std::byte> samples, T* into, F sample) noexcept {
  constexpr std::size_t block = 64;
  const auto* from = samples.data();
  std::size_t left = samples.size() / Bytes;
  for (; left >= block; left -= block, from += block * Bytes, into += block) {
    std::byte stored[block * Bytes];
    T converted[block];
    std::memcpy(stored, from, sizeof stored);
    for (std::size_t i = 0; i < block; ++i) converted[i] = sample(stored + i * Bytes);
    std::memcpy(into, converted, sizeof converted);
  }
  for (std::size_t i = 0; i < left; ++i) into[i] = sample(from + i * Bytes);
}

static void convert_to_f32(wav_encoding encoding, std::span<const std::byte> samples,
                           float* into) noexcept {
  using enum wav_encoding;
  auto scaled = [](int value, float by) { return static_cast<float>(value) * by; };
  switch (encoding) {
    case u8:
      return convert_wav_samples<1>(samples, into, [=](const std::byte* from) {
        return scaled(std::to_integer<int>(*from) - 128, 0x1p-7F);
      });
    case i16:
      return convert_wav_samples<2>(samples, into, [=](const std::byte* from) {
        return scaled(support::load_little<std::int16_t>(from), 0x1p-15F);
      });
    case i24:
      return convert_wav_samples<3>(
          samples, into, [=](const std::byte* from) { return scaled(load_i24(from), 0x1p-23F); });
    case i32:
      return convert_wav_samples<4>(samples, into, [=](const std::byte* from) {
        return scaled(support::load_little<std::int32_t>(from), 0x1p-31F);
      });
    case f32: return;  // already f32
    case f64:
      return convert_wav_samples<8>(samples, into, [](const std::byte* from) {
        return static_cast<float>(support::load_little<double>(from));
      });
  }
}

void convert_wav(wav_encoding encoding, std::span<const std::byte> samples, const tensor& into) {
  if (into.type() == element_type::f32 && encoding != wav_encoding::f32)
    convert_to_f32(encoding, samples, into.data<float>());
  else if (encoding == wav_encoding::i24)
    convert_wav_samples<3>(samples, into.data<std::int32_t>(), load_i24);
  else if (!samples.empty())
    std::memcpy(into.bytes(), samples.data(), samples.size());
}

}  // namespace lade::io
