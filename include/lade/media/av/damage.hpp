// The policy for damaged media.

#pragma once

#include <cstdint>

namespace lade::media {

// The policy for packets that cannot be read or decoded, and for frames that a decoder repaired.
enum class damage_policy : std::uint8_t {
  refuse,    // throws an error that names the file, the stream and the time
  tolerate,  // drops the frame or delivers it as repaired by the decoder, and counts it
};

}  // namespace lade::media
