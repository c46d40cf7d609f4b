// Makes PNGs of every kind, also of those that no encoder at hand writes.

#pragma once

#include <lade/buffer.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <zlib.h>

namespace lade::media {

struct png_kind {
  int bits = 8;
  int colour = 0;  // 0: grey, 2: RGB, 3: palette, 4: grey and alpha, 6: RGB and alpha
  bool interlaced = false;
  bool transparency = false;  // a tRNS chunk
  int orientation = 0;        // in an eXIf chunk; 0: none
  int palette = 0;            // entries; 0: as many as `bits` can name
};

inline int channels_of_png(int colour) {
  constexpr std::array<int, 7> channels{1, 0, 3, 1, 2, 0, 4};
  return channels[static_cast<std::size_t>(colour)];
}

inline std::string big_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

inline std::string png_chunk(const std::string& name, const std::string& body) {
  const auto named = name + body;
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(named.data()), named.size());
  return big_endian(static_cast<std::uint32_t>(body.size()), 4) + named +
         big_endian(static_cast<std::uint32_t>(sum), 4);
}

// One row of samples behind its filter byte, which is none.
inline std::string png_row(const std::vector<std::uint32_t>& samples, int bits) {
  std::string row(1, '\0');
  if (bits >= 8) {
    for (const auto sample : samples) row += big_endian(sample, bits / 8);
    return row;
  }
  const auto per_byte = static_cast<std::size_t>(8 / bits);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i % per_byte == 0) row += '\0';
    const auto shift = 8 - bits * static_cast<int>(i % per_byte + 1);
    row.back() = static_cast<char>(static_cast<unsigned char>(row.back()) | samples[i] << shift);
  }
  return row;
}

// All rows of every `step_x`-th and `step_y`-th pixel; nothing if there is none.
inline std::string png_pass(const std::vector<std::uint32_t>& samples, int width, int height,
                            const png_kind& kind, const std::array<int, 4>& pass) {
  std::string rows;
  const auto [left, top, step_x, step_y] = pass;
  const int channels = channels_of_png(kind.colour);
  for (int y = top; y < height && left < width; y += step_y) {
    std::vector<std::uint32_t> row;
    for (int x = left; x < width; x += step_x)
      for (int c = 0; c < channels; ++c)
        row.push_back(samples[static_cast<std::size_t>((y * width + x) * channels + c)]);
    rows += png_row(row, kind.bits);
  }
  return rows;
}

inline std::string png_extra(const png_kind& kind) {
  std::string chunks;
  if (kind.orientation > 0) {
    const std::string tiff("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0_\0\0\0\0\0\0", 26);
    auto body = tiff;
    body[body.find('_')] = static_cast<char>(kind.orientation);
    chunks += png_chunk("eXIf", body);
  }
  const int entries = kind.palette > 0 ? kind.palette : 1 << kind.bits;
  if (kind.colour == 3) {
    std::string palette;
    for (int i = 0; i < entries; ++i) palette += big_endian(static_cast<unsigned>(i * 48271), 3);
    chunks += png_chunk("PLTE", palette);
  }
  if (kind.transparency) chunks += png_chunk("tRNS", kind.colour == 3 ? "\x80" : big_endian(1, 2));
  return chunks;
}

// `samples` are [height, width, channels], each of `bits`.
inline buffer write_png(const std::vector<std::uint32_t>& samples, int width, int height,
                        const png_kind& kind) {
  using passes = std::vector<std::array<int, 4>>;
  const passes all{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                   {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  std::string raw;
  for (const auto& pass : kind.interlaced ? all : passes{{0, 0, 1, 1}})
    raw += png_pass(samples, width, height, kind, pass);
  auto size = compressBound(raw.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  packed.resize(size);
  const auto header = big_endian(static_cast<std::uint32_t>(width), 4) +
                      big_endian(static_cast<std::uint32_t>(height), 4) +
                      big_endian(static_cast<unsigned>(kind.bits), 1) +
                      big_endian(static_cast<unsigned>(kind.colour), 1) + std::string(2, '\0') +
                      std::string(1, kind.interlaced ? '\x01' : '\0');
  const auto file = "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_extra(kind) +
                    png_chunk("IDAT", packed) + png_chunk("IEND", "");
  buffer bytes(file.size());
  std::memcpy(bytes.data(), file.data(), file.size());
  return bytes;
}

}  // namespace lade::media
