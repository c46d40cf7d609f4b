// Owning pointers of libavfilter.

#pragma once

#include <cstdint>
#include <memory>

extern "C" {
#include <libavfilter/avfilter.h>
}

namespace lade::media {

struct graph_deleter {
  void operator()(AVFilterGraph* freed) const noexcept { avfilter_graph_free(&freed); }
  void operator()(AVFilterInOut* freed) const noexcept { avfilter_inout_free(&freed); }
};

using av_filter_graph = std::unique_ptr<AVFilterGraph, graph_deleter>;
using av_filter_ends = std::unique_ptr<AVFilterInOut, graph_deleter>;

}  // namespace lade::media
