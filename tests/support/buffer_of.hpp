// A buffer with a text.

#pragma once

#include <lade/buffer.hpp>

#include <cstring>
#include <string_view>

namespace lade::test {

inline buffer buffer_of(std::string_view text) {
  buffer bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace lade::test
