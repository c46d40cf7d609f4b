// A data set that needs no download: pictures of ten shapes, in files, with a folder for each
// class.

#pragma once

#include <lade/runtime.hpp>

#include <cstdint>
#include <string>

struct shapes_options {
  std::uint64_t images = 600;    // of each class, for training
  std::uint64_t held_out = 100;  // of each class, for testing
  std::uint64_t seed = 0;
};

// Draws ROOT/train/CLASS/NUMBER.png and ROOT/test/CLASS/NUMBER.png on the threads of the runtime:
// 80 x 80 pixels, of random colour, size, place and rotation, before noise. Equal options, equal
// files. Overwrites files of the same name. Throws lade::error naming a file that cannot be
// written.
void draw_shapes(lade::runtime& runtime, const std::string& root, const shapes_options& options);
