#include <lade/device.hpp>

#include <array>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace lade {

std::string to_string(const device& where) {
  constexpr std::array<std::string_view, 4> names{"cpu", "cuda", "cuda_host", "cuda_managed"};
  std::string text(names[static_cast<std::size_t>(where.type)]);
  bool is_numbered = where.type == device::kind::cuda || where.type == device::kind::cuda_managed;
  return is_numbered ? fmt::format("{}:{}", text, where.index) : text;
}

}  // namespace lade
