// Writes pictures of Y, Cb and Cr in device memory, such as the output of video decoders, to a
// batch of RGB or BGR: cropped, mirrored, resized, converted and normalised by one kernel. Not yet
// run on a GPU.

#pragma once

#include <lade/cuda/image_batch.hpp>

#include <array>
#include <cstdint>
#include <span>

struct CUstream_st;  // of <cuda_runtime.h>: a cudaStream_t is a pointer to it

namespace lade::cuda {

class stream;

// The weights of R, G and B in the luma: Rec. ITU-R BT.601-7, BT.709-6, and BT.2020-2 with
// non-constant luminance.
enum class yuv_matrix : std::uint8_t { bt601, bt709, bt2020 };

// The samples of each plane. Underscores separate planes.
enum class yuv_layout : std::uint8_t {
  y_cb_cr,  // I420, yuv420p, yuv422p10, ...
  y_cbcr,   // NV12, NV16, P010, P016
  y_crcb,   // NV21
};

// The position of a chroma sample among the luma samples that share it: types 0, 1 and 2 of Rec.
// ITU-T H.273, 8.7.
enum class yuv_siting : std::uint8_t { left, centre, top_left };

// The first sample of a plane, and the bytes from one row to the next.
struct yuv_plane {
  const void* data = nullptr;
  std::int64_t pitch = 0;
};

struct yuv_picture {
  std::array<yuv_plane, 3> planes{};  // in the order of the layout's name
  int width = 0;                      // in luma samples: 1 to 32768
  int height = 0;
  yuv_layout layout = yuv_layout::y_cbcr;

  // Significant bits of a sample, 8 to 16. Samples of more than 8 bits are 16-bit words in the
  // device's byte order, with `shift` unused bits below the significant ones: 6 for P010. Their
  // planes and pitches are multiples of two bytes.
  int bits = 8;
  int shift = 0;

  // One chroma sample belongs to 2^shift luma samples of an axis, rounded up: 1, 1 is 4:2:0; 1, 0
  // is 4:2:2; 0, 0 is 4:4:4. 0 to 2.
  int chroma_shift_x = 1;
  int chroma_shift_y = 1;
  yuv_siting siting = yuv_siting::left;

  yuv_matrix matrix = yuv_matrix::bt709;
  bool full_range = false;  // 0..255 instead of 16..235 (chroma 16..240)
  crop_box crop{};          // in luma samples
  bool flip = false;        // left to right
};

// Writes picture i to position i of `to`, which has three channels. Pictures may differ in all
// members.
//
// - The filter is that of write_images. It is applied to the planes, before colours are
//   converted.
// - R, G and B have 8 bits of precision, even if the samples have more or the elements of `to`
//   are floats. They equal those of lade::media::write_picture, or differ by one where a compiler
//   contracts floating-point operations. They differ from exact arithmetic by at most 2 of 255.
// - The matrices are those of Rec. ITU-T H.273, 8.3. In limited range (BT.601-7, 2.5.3; BT.709-6,
//   item 3.4), codes of more than 8 bits are 8-bit codes times a power of two. Codes above that
//   of 255, which the standards reserve, count as 255. In full range, the highest code stands for
//   1.
//
// Stream order, lifetimes, threads and errors are those of write_images. Also throws
// error(invalid_argument) for a null plane that the layout has, and error(unsupported) for
// unsupported bits or shifts.
void write_pictures(std::span<const yuv_picture> pictures, const image_batch& to, CUstream_st* on);

// The same on a stream of any device.
void write_pictures(std::span<const yuv_picture> pictures, const image_batch& to, const stream& on);

}  // namespace lade::cuda
