// Decoded pictures in the memory of a GPU.

#pragma once

#include <array>
#include <cstdint>

namespace lade::cuda {

// A picture as NVDEC leaves it: luma, and behind it the chroma. Planes are addresses in device
// memory.
struct surface {
  std::array<const void*, 3> planes{};  // of 4:2:0: Y, CbCr; of 4:4:4: Y, Cb, Cr
  std::int64_t pitch = 0;               // bytes from a row to the next, of all planes
  int width = 0;                        // of the samples at `planes`, in luma samples
  int height = 0;

  // Luma samples from where the decoder's memory begins to where `planes` begin. 0 where the
  // decoder cropped or resized the picture: then its memory has nothing else.
  int left = 0;
  int top = 0;
  int chroma = 420;  // or 444
  int bits = 8;      // of a sample; samples of more than 8 bits are the upper bits of 16

  // What the stream states of its colours, in the numbers of Rec. ITU-T H.273; 2 is "unspecified".
  // The stream's container is asked where the stream itself says nothing.
  int matrix = 2;
  bool full_range = false;
};

}  // namespace lade::cuda
