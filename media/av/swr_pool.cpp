#include "swr_pool.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

extern "C" {
#include <libavutil/log.h>
}

namespace lade::media {

// Idle contexts, the most recently used one last.
struct pooled_swr::store {
  struct idle {
    sample_layout from;
    sample_layout to;
    context_pointer context;
  };
  static constexpr std::size_t capacity = 32;

  std::mutex mutex;
  std::vector<idle> contexts;

  static store& instance() {
    static store all;
    return all;
  }

  // Removes and returns a matching context; null if there is none.
  context_pointer take(const sample_layout& from, const sample_layout& to) {
    const std::lock_guard lock(mutex);
    const auto found = std::find_if(contexts.rbegin(), contexts.rend(), [&](const auto& each) {
      return each.from == from && each.to == to;
    });
    if (found == contexts.rend()) return nullptr;
    auto context = std::move(found->context);
    contexts.erase(std::next(found).base());
    return context;
  }

  void put(idle unused) {
    const std::lock_guard lock(mutex);
    if (contexts.size() == capacity) contexts.erase(contexts.begin());
    contexts.push_back(std::move(unused));
  }
};

// FFmpeg's filter has 16 samples of the lower rate and up to 1,024 phases: 16 MiB at this ratio.
static void require_rates(int from, int to, std::string_view doing) {
  constexpr std::int64_t most = 256;
  if (from > 0 && to > 0 && from <= most * to && to <= most * from) return;
  throw error(errc::limit_exceeded, doing,
              fmt::format("from {} to {} samples per second; rates may differ by a factor of 256",
                          from, to));
}

static std::string name_of_layout(const channel_layout& layout) {
  char text[64] = "";
  av_channel_layout_describe(&layout.get(), text, sizeof text);
  return text;
}

pooled_swr::context_pointer pooled_swr::new_context(const sample_layout& from,
                                                    const sample_layout& to,
                                                    std::string_view doing) {
  require_rates(from.rate, to.rate, doing);
  SwrContext* made = nullptr;
  auto in = from.channels;  // FFmpeg 5.1 requires non-const layouts
  auto out = to.channels;
  const int result = swr_alloc_set_opts2(&made, &out.get(), to.format, to.rate, &in.get(),
                                         from.format, from.rate, AV_LOG_TRACE, nullptr);
  context_pointer context(made);
  check_av(result, doing);
  if (swr_init(context.get()) < 0)
    throw error(errc::unsupported, doing,
                fmt::format("FFmpeg cannot convert the channels {} to {}",
                            name_of_layout(from.channels), name_of_layout(to.channels)));
  return context;
}

pooled_swr pooled_swr::acquire(const sample_layout& from, const sample_layout& to,
                               std::string_view doing) {
  auto context = store::instance().take(from, to);
  // Reinitialising a context drops its samples and keeps its filter.
  if (!context || swr_init(context.get()) < 0) context = new_context(from, to, doing);
  return {std::move(context), from, to};
}

pooled_swr::~pooled_swr() {
  if (context_) store::instance().put({std::move(from_), std::move(to_), std::move(context_)});
}

void pooled_swr::release_idle() noexcept {
  auto& idle = store::instance();
  const std::lock_guard lock(idle.mutex);
  idle.contexts.clear();
  idle.contexts.shrink_to_fit();
}

}  // namespace lade::media
