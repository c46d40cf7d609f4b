// A cache of the colours of videos, by their headers.

#pragma once

#include "picture_colours.hpp"

#include <lade/media/av/decoder.hpp>
#include <lade/media/av/video.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace lade::cuda {

// The key is everything that determines the colours: the parameters of the stream, with the headers
// and colours of its container, and the headers in the key frame. So for a data set of one encoder,
// the CPU decodes one key frame.
//
// Any thread. Several threads may decode the same key frame at first.
class known_colours {
 public:
  // The options determine the colours, too: they are the same for all videos.
  explicit known_colours(const media::decode_options& options) : options_(options) {}
  known_colours(const known_colours&) = delete;

  // The colours of the first key frame that decoding these frames needs.
  // `numbers`: at least one; their packets must have been fetched.
  // Throws the errors of colours_of.
  picture_colours of(const media::video& from, std::span<const std::int64_t> numbers);

  std::size_t decoded() const;  // key frames

 private:
  std::optional<picture_colours> find(const std::string& key) const;
  void keep(const std::string& key, const picture_colours& decoded);

  const media::decode_options options_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, picture_colours> cache_;
  std::size_t decoded_ = 0;
};

}  // namespace lade::cuda
