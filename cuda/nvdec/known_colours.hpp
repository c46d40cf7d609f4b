// The colours of videos whose headers are equal to those of an earlier one.

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

// Keeps the colours of a few videos by all that decides them: the stream's parameters with the
// headers and colours that its container states, and the headers in the key frame. So of a data set
// that one encoder has made, one key frame is decoded.
//
// Any thread. Two threads may decode the same for the first time.
class known_colours {
 public:
  // The options decide as well: they are the same for all videos.
  explicit known_colours(const media::decode_options& options) : options_(options) {}
  known_colours(const known_colours&) = delete;

  // The colours of the first key frame that decoding these frames needs. `numbers`: at least one;
  // they must have been fetched. Throws what colours_of throws, for a video that is not known.
  picture_colours of(const media::video& from, std::span<const std::int64_t> numbers);

  std::size_t decoded() const;  // key frames

 private:
  std::optional<picture_colours> find(const std::string& key) const;
  void keep(const std::string& key, const picture_colours& decoded);

  const media::decode_options options_;
  mutable std::mutex mutex_;  // guards all that follows
  std::map<std::string, picture_colours> cache_;
  std::size_t decoded_ = 0;
};

}  // namespace lade::cuda
