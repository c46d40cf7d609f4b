// Triangular filters on a mel scale.

#pragma once

#include <lade/media/av/log_mel.hpp>

#include <cstddef>
#include <vector>

namespace lade::media {

// One filter: the weights of the bins from `first` on.
struct mel_filter {
  std::size_t first = 0;
  std::vector<float> weights;
};

// Returns `n_mels` filters over the bins of a transform of n_fft samples.
std::vector<mel_filter> mel_filters_of(const log_mel_options& options);

}  // namespace lade::media
