// Basics for the code of kernels. nvcc compiles it for devices, and any C++ compiler for tests,
// which run the same code on the CPU, block by block and thread by thread.

#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>

#include "grid_mark.hpp"

namespace lade::cuda {

// The extents of a launch, in blocks, and the threads and the shared memory of each block.
struct grid_shape {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  unsigned threads = 1;
  unsigned shared_bytes = 0;
};

// The position of a block in a grid.
struct grid_block {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

constexpr std::int64_t divided_up(std::int64_t value, std::int64_t by) noexcept {
  return (value + by - 1) / by;
}

template <class T>
LADE_GRID_CODE T smaller(T a, T b) {
  return b < a ? b : a;
}

template <class T>
LADE_GRID_CODE T larger(T a, T b) {
  return a < b ? b : a;
}

template <class T>
LADE_GRID_CODE T bounded(T value, T low, T high) {
  return value < low ? low : high < value ? high : value;
}

// a * b in double precision, never fused with an addition. So devices and the CPU compute the same
// tables.
LADE_GRID_CODE double product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

LADE_GRID_CODE std::uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Loads a value from an address aligned for it, whatever type the memory has.
template <class T>
LADE_GRID_CODE T load_aligned(const void* from) {
#if defined(__CUDA_ARCH__)
  return *static_cast<const T*>(from);
#else
  assert(address_of(from) % alignof(T) == 0);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
#endif
}

template <class T>
LADE_GRID_CODE void store_aligned(void* to, const T& value) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == sizeof(uint4)) {
    uint4 whole;  // one instruction; the compiler may split a structure
    memcpy(&whole, &value, sizeof whole);
    __stwb(static_cast<uint4*>(to), whole);
  } else {
    *static_cast<T*>(to) = value;
  }
#else
  assert(address_of(to) % alignof(T) == 0);
  std::memcpy(to, &value, sizeof value);
#endif
}

// Four of the eight bytes of two successive words, from byte `first` on, which is 1 to 3.
LADE_GRID_CODE std::uint32_t word_across(std::uint32_t lower, std::uint32_t upper, unsigned first) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(lower, upper, 8 * first);
#else
  return (lower >> (8 * first)) | (upper << (32 - 8 * first));
#endif
}

// The distance of an address from the multiple of four before it.
LADE_GRID_CODE unsigned behind_word(const void* pointer) {
  return static_cast<unsigned>(address_of(pointer) & 3);
}

// Loads four bytes from any address, the first one lowest. Reads whole aligned words: up to three
// bytes before and after them.
LADE_GRID_CODE std::uint32_t load_word(const unsigned char* from) {
  const auto behind = behind_word(from);
  const auto lower = load_aligned<std::uint32_t>(from - behind);
  if (behind == 0) return lower;
  return word_across(lower, load_aligned<std::uint32_t>(from - behind + 4), behind);
}

// Loads the first `count` of four bytes; the others are 0. Reads nothing else.
LADE_GRID_CODE std::uint32_t load_bytes(const unsigned char* from, std::int64_t count) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i)
    if (i < count) word |= std::uint32_t{from[i]} << (8 * i);
  return word;
}

// Byte i of a word; its 16-bit half i.
LADE_GRID_CODE unsigned byte_in(std::uint32_t word, int i) { return (word >> (8 * i)) & 0xff; }
LADE_GRID_CODE unsigned half_in(std::uint32_t word, int i) { return (word >> (16 * i)) & 0xffff; }

}  // namespace lade::cuda

#undef LADE_GRID_CODE
