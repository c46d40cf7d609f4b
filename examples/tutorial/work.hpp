// Work for pipelines to do: a slow server, a decoder, and a model.

#pragma once

#include <lade/sleep.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

inline void compute(std::chrono::microseconds time) {
  auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {}
}

inline lade::task<std::uint64_t> fetch(std::uint64_t page) {
  co_await lade::sleep(std::chrono::milliseconds(10));
  co_return page;
}

inline std::uint64_t decode(std::uint64_t page) {
  compute(std::chrono::microseconds(200));
  return page;
}

inline void train(const std::vector<std::uint64_t>&) { compute(std::chrono::milliseconds(1)); }
