// An nvJPEG without a GPU, for tests: it writes patterns to the memory of a fake driver.

#pragma once

#include "../../cuda/nvjpeg_types.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fake_driver.hpp"

namespace lade::cuda {

// A JPEG file of which only the markers are real, and the number of bytes between them. What is
// drawn depends on `seed`, which no two files of a test have in common.
struct tiny_jpeg {
  int width = 8;
  int height = 8;
  std::uint8_t seed = 0;
  int frame_marker = 0xc0;  // baseline
  int bits = 8;
  int components = 3;
  int sampling = 0x22;                     // of the first component
  std::vector<std::string> segments = {};  // marker and body, without the length
  bool ends = true;
  bool has_pixels = true;  // it is long enough for them

  std::string bytes() const;
};

// Channel c of the pixel that the fake draws there.
std::uint8_t drawn(std::uint8_t seed, int x, int y, int c);

// Replaces nvJPEG as long as it lives. The driver must outlive it.
//
// Decoding is queued on the stream, and reads the files and writes the images when the stream
// comes to it. It notices misuse (`faults`): a state that is used or destroyed while the stream has
// not passed what it was used for, and a state that is used before it is initialised. The driver
// notices drawing where there is no memory.
//
// Thread: any.
class fake_nvjpeg {
 public:
  struct options {
    bool has_engines = true;
  };

  explicit fake_nvjpeg(fake_driver& driver) : fake_nvjpeg(driver, options{}) {}
  fake_nvjpeg(fake_driver& driver, const options& how);
  fake_nvjpeg(const fake_nvjpeg&) = delete;
  ~fake_nvjpeg();

  // The next call of the function, named as in the table, returns this; `after` such calls.
  void fail_next(const std::string& function, nvjpeg_status with, std::size_t after = 0);

  // What decoding a batch with that file returns, and what parsing its header returns.
  void set_decoding(std::uint8_t seed, nvjpeg_status to);
  void set_parsing(std::uint8_t seed, nvjpeg_status to);

  // nvJPEG takes that file for a larger image than its header says.
  void set_larger(std::uint8_t seed);

  // Engines, or nothing at all, do not decode that file.
  void set_unsupported_by_engines(std::uint8_t seed);
  void set_unsupported(std::uint8_t seed);

  // The sizes of the batches that engines and other units were given.
  std::vector<std::size_t> engine_batches() const;
  std::vector<std::size_t> gpu_batches() const;

  // What the last handle that was made allocates memory of the GPU from.
  nvjpeg_allocator memory_of_device() const;

  std::size_t live_objects() const;  // handles, states, streams and parameters
  std::vector<std::string> faults() const;

  struct table;
  struct object;
  struct drawing;

 private:
  nvjpeg_status enter(const std::string& function);
  void fault(std::string what);
  void queue(object& state, drawing work, CUstream_st* stream);
  void draw(const drawing& work);

  fake_driver& driver_;
  options options_;
  mutable std::recursive_mutex mutex_;  // guards all that follows
  std::map<std::string, std::pair<nvjpeg_status, std::size_t>> failures_;
  std::map<std::uint8_t, nvjpeg_status> decoding_;
  std::map<std::uint8_t, nvjpeg_status> parsing_;
  std::map<std::uint8_t, bool> unsupported_;  // true: by all
  std::set<std::uint8_t> sizes_;
  std::vector<std::size_t> engine_batches_;
  std::vector<std::size_t> gpu_batches_;
  std::size_t live_ = 0;
  nvjpeg_allocator memory_of_device_{};

  mutable std::mutex faults_mutex_;
  std::vector<std::string> faults_;  // guarded by faults_mutex_
};

}  // namespace lade::cuda
