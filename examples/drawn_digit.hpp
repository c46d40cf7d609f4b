// A data set that needs no files: images of digits, drawn with noise.

#pragma once

#include <lade/random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

struct drawn_digit {
  static constexpr std::size_t width = 3;
  static constexpr std::size_t height = 5;

  std::uint64_t key = 0;
  std::size_t label = 0;
  std::array<float, width * height> pixels = {};
};

// Draws a digit. Its label and its noise depend on `key` alone.
inline drawn_digit draw_digit(std::uint64_t key) {
  // Rows from the top, of three bits each.
  constexpr std::array<unsigned, 10> shapes{075557, 026227, 071747, 071717, 055711,
                                            074717, 074757, 071122, 075757, 075717};
  lade::random random(key);
  drawn_digit digit{.key = key, .label = random.below(shapes.size())};
  for (auto bit = digit.pixels.size(); auto& pixel : digit.pixels)
    pixel = static_cast<float>((shapes[digit.label] >> --bit & 1) + random.uniform(-0.4, 0.4));
  return digit;
}
