// The part of a tee that copies items to the paths and joins their results.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/coroutines/owner.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/link.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/lineage.hpp>
#include <lade/merge.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace lade {

struct tee_options;

namespace detail {

// Passes on the results of a path. Refuses the state of the run if a result is made from other
// items, or other parts, than the first path's result.
template <class T>
async_generator<T> compare_origins(async_generator<T> results, std::size_t path,
                                   std::shared_ptr<lineage> first, open_context run) {
  while (auto* item = co_await results.next()) {
    if (path == 0)
      *first = results.origin();
    else if (results.origin() != *first || results.origin().part() != first->part())
      run.refuse_state("the paths of tee make results of unlike items");
    co_yield *item;
  }
}

// Throws error(limit_exceeded) that names the paths which wait for each other.
[[noreturn]] void throw_standstill(const split_base& split, const split_base::standstill& paths);

// Passes on the rows. Throws if they have ended because the paths wait for each other.
template <class Row>
async_generator<Row> deliver_rows(async_generator<Row> rows, owner<paths_stop>,
                                  std::shared_ptr<split_base> split) {
  while (auto* row = co_await rows.next()) co_yield *row;
  if (auto paths = split->stuck()) throw_standstill(*split, *paths);
}

// Sends every item to all paths, when all of them have a free slot.
template <class T>
class item_copies final : public distributor {
 public:
  item_copies(split<T>& to, std::size_t paths, stage_counters& counters) noexcept
      : distributor(split_base::all_paths), to_(to), paths_(paths), counters_(counters) {}

  choice choose(void*, const lineage&) override {
    increment(counters_.in);
    return {.path = split_base::all_paths};
  }

  void give(std::size_t, void* item, lineage origin) override {
    auto& shared = *static_cast<T*>(item);
    for (std::size_t path = 0; path + 1 < paths_; ++path) to_.give(path, shared, origin);
    to_.give(paths_ - 1, std::move(shared), std::move(origin));
  }

 private:
  split<T>& to_;
  const std::size_t paths_;
  stage_counters& counters_;
};

// The part of a tee that does not depend on the types of its paths.
//
//   input ─ split ─┬─> path ─ link ─╮
//                  ├─> path ─ link ─┼─> tuples ─> next stage
//                  └─> path ─ link ─╯
//
// The split before the paths queues up to `buffer` items for each path, each link behind them up to
// `buffer` results. Tuples take their results in the order of the paths. The split notices if the
// paths then wait for each other (see split_base).
class tee_core {
 public:
  // Throws error(invalid_argument) that names the stage if the buffer is too large.
  explicit tee_core(const tee_options& options);

  template <class T, class... Out>
  pipeline<std::tuple<Out...>> attach(const pipeline<T>& in,
                                      std::tuple<pipeline<Out>...> paths) const {
    measure<T>();  // these refuse items whose bytes are unknown
    (measure<Out>(), ...);
    auto ends = std::apply([](const auto&... each) { return nodes_of(each...); }, paths);
    return make_pipeline<std::tuple<Out...>>(
        facts(in.last(), std::move(ends)),
        [in, paths = std::move(paths), self = *this](const open_context& run) {
          return self.open(in, paths, run, std::index_sequence_for<Out...>());
        });
  }

 private:
  // Returns the function that measures items of type T; null without a limit in bytes. Throws
  // error(invalid_argument) if there is one and the bytes of the items are unknown.
  template <class T>
  measure_item measure() const {
    return measure_for<T>(buffer_bytes_, name_, "buffer_bytes");
  }

  // The facts of the node.
  node_facts facts(node_ptr in, std::vector<node_ptr> ends) const;

  template <class T, class... Out, std::size_t... I>
  async_generator<std::tuple<Out...>> open(const pipeline<T>& in,
                                           const std::tuple<pipeline<Out>...>& paths,
                                           const open_context& run,
                                           std::index_sequence<I...>) const {
    owner stop(std::make_shared<paths_stop>(run));
    auto inside = run.until(stop->token()).in(nullptr);  // not in flight in an outer path
    auto split = std::make_shared<detail::split<T>>(inside, sizeof...(Out), buffer_, buffer_bytes_,
                                                    measure<T>());
    split->watch(run, stop->source());
    std::tuple<std::optional<opened_path<Out>>...> opened;
    constexpr auto last = sizeof...(Out) - 1;  // opened first: statistics reverse the order
    open_paths(opened, inside, split, paths, std::index_sequence<(last - I)...>());
    auto& counters = run.add_stage();
    split->count_for(counters);
    const auto queued = sizeof...(Out) * link_options::results(split->buffer()).ring.slots;
    run.run->stages().record_workers(counters, {.slots = queued, .gathers = true});
    auto items = in.open(run.until(split->stop_token()).taken_by(split->wanted()));
    (std::get<I>(opened)->start(counters, detail::split<T>::end_of(split, I)), ...);
    split->start(std::move(items),
                 std::make_unique<item_copies<T>>(*split, sizeof...(Out), counters), counters);
    auto origin = std::make_shared<lineage>();
    auto rows =
        zip_opened(compare_origins(std::move(*std::get<I>(opened)).deliver(), I, origin, run)...);
    return observe(deliver_rows(std::move(rows), std::move(stop), split), run, counters);
  }

  template <class... Out, std::size_t... I>
  void open_paths(std::tuple<std::optional<opened_path<Out>>...>& opened,
                  const open_context& inside, const std::shared_ptr<split_base>& split,
                  const std::tuple<pipeline<Out>...>& paths, std::index_sequence<I...>) const {
    (std::get<I>(opened).emplace(inside, split, I, std::get<I>(paths),
                                 measure<std::tuple_element_t<I, std::tuple<Out...>>>()),
     ...);
  }

  std::size_t buffer_;
  std::uint64_t buffer_bytes_;
  std::string name_;
};

}  // namespace detail
}  // namespace lade
