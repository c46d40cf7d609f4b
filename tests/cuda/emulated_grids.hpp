// Launches of kernels that run on the CPU: block by block, and the threads of a block in any order
// between two barriers. The code of a thread is that which the kernels run.

#pragma once

#include "../../cuda/convert_grid.hpp"
#include "../../cuda/copy_grid.hpp"
#include "../../cuda/kernel_launches.hpp"
#include "../../cuda/layout_grid.hpp"
#include "../../cuda/resample_grid.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

namespace lade::cuda {

// While it lives, launches run on the CPU before they return. One at a time.
class emulated_grids {
 public:
  explicit emulated_grids(std::uint64_t seed) : engine_(seed) {
    current_ = this;
    replace_launches(&table);
  }
  emulated_grids(const emulated_grids&) = delete;
  emulated_grids& operator=(const emulated_grids&) = delete;
  ~emulated_grids() { replace_launches(nullptr); }

  // Which blocks of a launch run; all if not set.
  std::function<bool(const grid_shape&, const grid_block&)> only;

  // What is called before each launch, if it is set.
  std::function<void()> before_launch;

  int launches = 0;
  CUstream_st* last_stream = nullptr;
  bool grouped = false;  // whether the last conversion's threads made groups of pixels

 private:
  static int copy(const byte_copy& copy, CUstream_st* on) {
    return current_->run(grid_of(copy), on, [&](const grid_block& block, int thread) {
      copy_group(copy, block, thread);
    });
  }

  static int convert(const convert_batch& batch, CUstream_st* on) {
    current_->grouped = batch.grouped;
    use_convert_kind(batch, [&](auto kind) {
      current_->run(grid_of(batch, kind.pixels), on,
                    [&](const grid_block& block, int thread) { kind.run(batch, block, thread); });
    });
    return 0;
  }

  static int layout(const layout_change& change, CUstream_st* on) {
    const auto shape = grid_of(change);
    use_layout_kind(change, [&](auto kind) {
      current_->run(shape, on, [&](const grid_block& block, int thread) {
        kind.run(change, block, thread, shape.y);
      });
    });
    return 0;
  }

  static int resample(const resample_batch& batch, CUstream_st* on) {
    const auto shape = grid_of(batch);
    current_->run_blocks(shape, on, [&](const grid_block& block) {
      if (batch.sample_bytes == 1)
        current_->resample_one<1>(batch, shape, block);
      else
        current_->resample_one<2>(batch, shape, block);
    });
    return 0;
  }

  // Shared memory begins with anything, and what is behind it must stay as it is.
  template <int SampleBytes>
  void resample_one(const resample_batch& batch, const grid_shape& shape, const grid_block& block) {
    if (shape.shared_bytes > 48 * 1024) throw std::runtime_error("too much shared memory");
    std::vector<sample_taps> memory(shape.shared_bytes / sizeof(sample_taps) + 2, {12345, -9});
    const auto behind = shape.shared_bytes;
    auto* bytes = reinterpret_cast<unsigned char*>(memory.data());
    std::fill(bytes + behind, bytes + behind + 8, static_cast<unsigned char>(0xee));
    std::vector<resample_thread> states(shape.threads);
    resample_block<SampleBytes>(batch, block, shared_in(memory.data(), batch.layout),
                                [&](auto step) {
                                  for (const auto t : any_order(shape.threads))
                                    step(static_cast<int>(t), states[t]);
                                });
    for (int i = 0; i < 8; ++i)
      if (bytes[behind + static_cast<unsigned>(i)] != 0xee)
        throw std::runtime_error("wrote behind shared memory");
  }

  template <class F>
  void run_blocks(const grid_shape& shape, CUstream_st* on, F run_block) {
    if (shape.x >= 1U << 31 || shape.y > 65535 || shape.z > 65535 || shape.threads > 1024)
      throw std::runtime_error("no device has such a grid");
    ++launches;
    last_stream = on;
    if (before_launch) before_launch();
    for (grid_block block; block.z < shape.z; ++block.z)
      for (block.y = 0; block.y < shape.y; ++block.y)
        for (block.x = 0; block.x < shape.x; ++block.x)
          if (!only || only(shape, block)) run_block(block);
  }

  template <class F>
  int run(const grid_shape& shape, CUstream_st* on, F run_thread) {
    run_blocks(shape, on, [&](const grid_block& block) {
      for (const auto t : any_order(shape.threads)) run_thread(block, static_cast<int>(t));
    });
    return 0;
  }

  // The same order for most blocks, which is enough, and faster.
  const std::vector<unsigned>& any_order(unsigned threads) {
    if (order_.size() != threads || ++uses_ % 64 == 0) {
      order_.resize(threads);
      for (unsigned i = 0; i < threads; ++i) order_[i] = i;
      std::shuffle(order_.begin(), order_.end(), engine_);
    }
    return order_;
  }

  static constexpr kernel_launches table{copy, convert, layout, resample};
  static inline emulated_grids* current_ = nullptr;

  std::mt19937_64 engine_;
  std::vector<unsigned> order_;
  unsigned uses_ = 0;
};

}  // namespace lade::cuda
