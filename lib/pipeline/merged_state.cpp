#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/error.hpp>
#include <lade/state.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace lade {

namespace detail {

// The states of all ranks of one run, in the order of the ranks.
class merger {
 public:
  explicit merger(std::span<const state> ranks) : ranks_(ranks.begin(), ranks.end()) {
    if (ranks.empty()) fail("there are no states");
    for (auto& each : ranks_) require_possible(each, "merge states");
    std::ranges::sort(ranks_, {}, &state::rank);
    for (auto& each : ranks_) add_sources_of(each);
    for (std::uint64_t i = 0; i < ranks_.size(); ++i) check(ranks_[i], i);
    if (ranks_.size() != ranks_[0].world)
      fail(fmt::format("{} ranks are needed, each once", ranks_[0].world));
  }

  state merged() const {
    auto result = ranks_[0];
    gaps undelivered(result.delivered);
    std::uint64_t apart = 0;
    for (std::size_t i = 0; i < result.sources.size(); ++i)
      for_each_stretch(i, [&](lineage::range steps, const sources& done) {
        bool by_all = done.size() == ranks_.size();
        auto count = by_all ? 1 : steps.last - steps.first + 1;
        if (!by_all) apart += count * done.size();
        if (apart > most_apart) fail("they are too far apart");
        for (auto step = steps.first; count-- > 0; ++step)
          for (auto* source : done) {
            auto first = source->first + step * result.world;
            auto last = by_all
                            ? first + (steps.last - steps.first) * result.world + result.world - 1
                            : first;
            result.delivered.add({undelivered.at(first), undelivered.at(last)});
            if (by_all) break;  // the range of the first rank includes the items of all others
          }
      });
    for (auto& positions : own_of_all()) result.delivered.add(positions);
    result.own = {};
    result.world = 1;
    if (ranks_.size() > 1) {  // the choices of a rank are among its own items
      result.chosen = {};
      result.steps_repeated = 0;
    }
    for (auto& source : result.sources) {
      source.first = 0;
      source.since = {};
    }
    return result;
  }

 private:
  static constexpr std::uint64_t most_apart = 1 << 20;                 // items
  static constexpr std::uint64_t most_items = std::uint64_t{1} << 62;  // on all ranks, with repeats

  [[noreturn]] static void fail(const std::string& why) {
    throw error(errc::invalid_argument, "merge states", why);
  }

  // Adds the sources that this rank has started to the ranks that have not started them.
  void add_sources_of(const state& one) {
    for (auto& source : std::vector(one.sources))
      for (auto& each : ranks_) {
        auto place =
            std::ranges::lower_bound(each.sources, source.begin, {}, &state::source::begin);
        if (place != each.sources.end() && place->begin == source.begin) continue;
        auto same = source;
        same.first = source.first - one.rank + each.rank;
        same.since = {};
        each.sources.insert(place, std::move(same));
      }
  }

  void check(const state& each, std::uint64_t rank) const {
    auto& first = ranks_[0];
    auto require_same = [](bool same, const char* what) {
      if (!same) fail(std::string("they differ in ") + what);
    };
    require_same(each.epoch == first.epoch, "the epoch");
    require_same(each.seed == first.seed, "the seed");
    require_same(each.stages == first.stages, "the stages");
    require_same(std::ranges::equal(each.sources, first.sources, {}, &state::source::items,
                                    &state::source::items),
                 "the items of the source");
    require_same(std::ranges::equal(each.sources, first.sources, {}, &state::source::identity,
                                    &state::source::identity),
                 "the data set");
    require_same(std::ranges::equal(each.sources, first.sources, {}, &state::source::order,
                                    &state::source::order),
                 "the order of the source");
    require_same(each.world == first.world, "the number of ranks");
    require_same(each.steps == first.steps, "the number of steps");
    require_same(each.steps_taken == first.steps_taken, "how many steps they have taken");
    require_same(each.delivered == first.delivered, "what they began with");
    if (each.rank != rank) fail(fmt::format("rank {} is missing", rank));
    if (each.parts > 0)
      fail(
          fmt::format("rank {} has delivered an item in part; the other ranks do not know which "
                      "parts",
                      rank));
    for (std::size_t i = 0; i < each.sources.size(); ++i) {
      auto& source = each.sources[i];
      require_same(source.first == first.sources[i].first + rank, "their parts of a source");
      auto steps = source.since.ranges();
      if (!steps.empty() && steps.back().last > most_items / each.world)
        fail(fmt::format("rank {} has delivered more than there is", rank));
    }
  }

  // In ascending order, since adding to the end of a lineage is fast.
  std::vector<lineage::range> own_of_all() const {
    std::vector<lineage::range> all;
    for (auto& each : ranks_)
      all.insert(all.end(), each.own.ranges().begin(), each.own.ranges().end());
    std::ranges::sort(all, {}, &lineage::range::first);
    return all;
  }

  using sources = std::vector<const state::source*>;

  // Divides the steps of the i-th source into stretches. Every rank has done each stretch either
  // completely or not at all. Calls `visit` with each stretch that some rank has done, and with the
  // source on the ranks that have done it.
  template <class Visit>
  void for_each_stretch(std::size_t i, Visit visit) const {
    std::vector<std::uint64_t> ends;
    for (auto& each : ranks_)
      for (auto& range : each.sources[i].since.ranges())
        ends.insert(ends.end(), {range.first, range.last + 1});
    std::ranges::sort(ends);
    const auto again = std::ranges::unique(ends);
    ends.erase(again.begin(), again.end());
    for (std::size_t k = 1; k < ends.size(); ++k) {
      sources done;
      for (auto& each : ranks_)
        if (each.sources[i].since.contains(ends[k - 1])) done.push_back(&each.sources[i]);
      if (!done.empty()) visit(lineage::range{ends[k - 1], ends[k] - 1}, done);
    }
  }

  std::vector<state> ranks_;
};

}  // namespace detail

state merge(std::span<const state> ranks) { return detail::merger(ranks).merged(); }

}  // namespace lade
