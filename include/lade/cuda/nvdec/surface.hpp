// Decoded pictures in the memory of a GPU.

#pragma once

#include <array>
#include <cstdint>

namespace lade::cuda {

// A picture in NVDEC's output format: luma, followed by chroma. Planes are addresses in device
// memory.
struct surface {
  std::array<const void*, 3> planes{};  // of 4:2:0: Y, CbCr; of 4:4:4: Y, Cb, Cr
  std::int64_t pitch = 0;               // bytes from one row to the next, in all planes
  int width = 0;                        // of the samples at `planes`, in luma samples
  int height = 0;

  // Luma samples from the beginning of the decoder's memory to `planes`. 0 if the decoder cropped
  // or resized the picture: then its memory has nothing else.
  int left = 0;
  int top = 0;
  int chroma = 420;  // or 444
  int bits = 8;      // of a sample; samples of more than 8 bits are the upper bits of 16

  // The colours as the stream states them, or else its container, in the numbers of Rec. ITU-T
  // H.273; 2 is "unspecified".
  int matrix = 2;
  bool full_range = false;
};

}  // namespace lade::cuda
