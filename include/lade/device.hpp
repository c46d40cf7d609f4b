// The location of memory, in the host or in a GPU.

#pragma once

#include <cstdint>
#include <string>

namespace lade {

// The device that memory belongs to, in the terms of DLPack: its kind, and its number among the
// devices of that kind.
struct device {
  enum class kind : std::uint8_t {
    cpu,           // memory of the host
    cuda,          // memory of a GPU, which the CPU cannot read
    cuda_host,     // pinned memory of the host, which GPUs access by themselves
    cuda_managed,  // memory that the driver migrates between host and GPU
  };
  kind type = kind::cpu;
  int index = 0;

  // Whether the CPU may read and write the memory through its address.
  constexpr bool is_host_accessible() const noexcept { return type != kind::cuda; }

  friend bool operator==(const device&, const device&) = default;
};

std::string to_string(const device& where);  // "cpu", "cuda:0", "cuda_host", "cuda_managed:0"

}  // namespace lade
