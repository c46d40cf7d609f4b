// What happens to media that is damaged.

#pragma once

#include <cstdint>

namespace lade::media {

// What happens to packets that cannot be read or decoded, and frames that a decoder had to repair.
enum class damage_policy : std::uint8_t {
  refuse,    // an exception that names the file, the stream and the time
  tolerate,  // the frame is dropped or delivered as the decoder repaired it, and counted
};

}  // namespace lade::media
