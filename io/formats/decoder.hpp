// The interface of stream decompressors, which do no I/O.

#pragma once

#include <lade/io/formats/decompress.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lade::detail {

class decoder {
 public:
  struct progress {
    std::size_t read;
    std::size_t written;
  };

  virtual ~decoder() = default;

  // Reads from `in` and writes to `out` until one of them is exhausted. Throws error.
  virtual progress decode(std::span<const std::byte> in, std::span<std::byte> out) = 0;

  // Whether the stream may end here.
  virtual bool may_end() const noexcept = 0;
};

// Returns the decoder for a stream, by its first bytes `begin`: magic_bytes of them, or all if
// there are fewer. Null if the stream is not compressed.
inline constexpr std::size_t magic_bytes = 4;
std::unique_ptr<decoder> make_decoder(std::string_view begin, const std::string& name,
                                      const io::decompress_options& options);

}  // namespace lade::detail
