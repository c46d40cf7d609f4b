// Sources that number their items, and sources whose items are reached by index.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/items.hpp>
#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/held.hpp>
#include <lade/lineage.hpp>
#include <lade/pipeline.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lade::detail {

// How number_items() numbers the items of a stream.
template <class T>
struct numbering {
  stretch wanted = {};                  // indices of the items to yield
  std::vector<std::string> order = {};  // steps of the order, as texts for states
  std::string identity = {};            // identity of the data set

  // The name of an item of a listing. Without an `identity`, states identify a listing by the names
  // of its items.
  std::function<std::string(const T&)> identity_of = nullptr;
};

// Yields the items of a stretch of a source with their positions. Its exceptions name the source.
// If a run resumes from a state of a listing, the generator first compares the names of the items
// with those of the state. Until then it holds all items back.
template <class T>
async_generator<T> number_items(async_generator<T> items, open_context run,
                                stage_counters& counters, open_input input, numbering<T> how) {
  std::vector<held<T>> waiting;
  try {
    auto& progress = run.progress();
    progress.begin(assignment{
        .begin = run.pass->first, .order = std::move(how.order), .identity = how.identity});
    if (!how.identity.empty()) how.identity_of = nullptr;
    listing_log listing(progress, run.pass->first, how.identity_of != nullptr);
    std::uint64_t i = 0;
    for (; i < how.wanted.end; ++i) {
      auto item = co_await items.next();
      if (!item) break;
      run.throw_if_stopped(counters);
      require_own_position(i, run);
      if (how.identity_of) listing.add(how.identity_of(*item));
      bool is_left = i >= how.wanted.first && !run.leaves_out(run.pass->first + i);
      if (!listing.is_compared()) {
        if (is_left) waiting.emplace_back(std::move(*item), lineage(run.pass->first + i));
        continue;
      }
      for (auto& each : waiting) {
        count_out(counters, *each);
        co_yield std::move(each);
      }
      waiting.clear();
      if (!is_left) continue;
      count_out(counters, *item);
      positioned<T> yielded{run.pass->first + i, *item};
      co_yield yielded;
    }
    listing.end();
    if (i < how.wanted.end) progress.require_length(run.pass->first, i, run.pass->span);
    input.end();
  } catch (...) {
    std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, {}));
  }
}

// The description of a source whose items are reached by index.
template <class T>
struct indexed_description {
  std::string name;  // name in statistics and errors

  // Returns the complete list; called when a run needs it. Awaited on the CPU pool; may block.
  std::function<task<std::shared_ptr<const item_list<T>>>()> load;

  // Yields the items in the order of the list before the list is complete. Null if the source
  // cannot do so.
  std::function<async_generator<T>()> stream = nullptr;

  std::string identity = {};  // identity of the data set, as in numbering
  std::function<std::string(const T&)> identity_of = nullptr;

  std::optional<std::uint64_t> size = {};  // size of the list, if known before load()
};

// The facts of such a source behind the steps of an order.
node_facts facts_of_list(const std::string& name, std::optional<std::uint64_t> items,
                         const std::vector<order_step>& steps);

// A source whose items are reached by index, in an order: shuffled, drawn, sharded, cut or
// repeated. These steps cost no memory, and the source makes only items that the run delivers.
template <class T>
class indexed_source final : public node<T> {
 public:
  using description = std::shared_ptr<const indexed_description<T>>;

  explicit indexed_source(description what, std::vector<order_step> steps = {})
      : node<T>(facts_of_list(what->name, what->size, steps)),
        what_(std::move(what)),
        steps_(std::move(steps)) {}

  async_generator<T> open(const open_context& run) const override {
    auto& counters = run.add_stage(0);
    run.depends_on_epoch(steps_);
    auto part = part_of(steps_);
    run.progress().announce(part.rank, part.world);
    auto wanted = what_->stream ? stretch_of(steps_) : std::nullopt;
    if (!wanted) return visit(what_, steps_, run, counters, open_input(run.run));
    return number_items<T>(begin_with(what_->stream, run, counters), run, counters,
                           open_input(run.run),
                           {*wanted, texts_of(steps_), what_->identity, what_->identity_of});
  }

  counted_ptr<const node<T>> then(const order_step& step) const override {
    auto steps = steps_;
    steps.push_back(step);
    return counted_ptr(new indexed_source(what_, std::move(steps)));
  }

 private:
  static async_generator<T> visit(description what, std::vector<order_step> steps, open_context run,
                                  stage_counters& counters, open_input input) {
    lineage position;  // position of the current item
    try {
      auto list = co_await what->load();
      auto order = begin_order(std::move(steps), list->size(), identity_of(*what, *list), run);
      gaps own(run.progress().own_delivered(run.pass->first));
      for (std::uint64_t n = 0; own.at(n) < order.size(); ++n) {
        if (run.run->failures().is_behind()) co_await run.run->failures().caught_up();
        run.throw_if_stopped(counters);
        auto k = own.at(n);
        auto place = order.at(k);
        require_own_position(place.position, run);
        const auto numbered = run.pass->first + place.position;
        if (run.is_kept(numbered)) continue;
        position = lineage(numbered);
        auto item = item_of(*list, place.index, run, counters, position);
        if (!item) {
          co_await consume(position);
          continue;
        }
        count_out(counters, *item);
        with_lineage<T> yielded{position, *item};
        co_yield yielded;
      }
      input.end();
    } catch (...) {
      std::rethrow_exception(run.failure(counters, {on_error::fail}, {}, position));
    }
  }

  static std::string identity_of(const indexed_description<T>& what, const item_list<T>& list) {
    if (!what.identity.empty()) return what.identity;
    if (!what.identity_of) return list.identity();
    support::name_digest names;
    for (std::uint64_t i = 0; i < list.size(); ++i) names.add(what.identity_of(list.at(i)));
    return names.text();
  }

  // Returns nothing if list.at() throws and the failure policy drops the item.
  static std::optional<T> item_of(const item_list<T>& list, std::uint64_t index,
                                  const open_context& run, stage_counters& counters,
                                  const lineage& position) {
    try {
      return list.at(index);
    } catch (...) {
      auto failure = run.failure(counters, {}, {}, position);
      if (failure) std::rethrow_exception(failure);
      return std::nullopt;
    }
  }

  description what_;
  std::vector<order_step> steps_;
};

template <class T>
task<std::shared_ptr<const item_list<T>>> give_list(std::shared_ptr<const item_list<T>> kept) {
  co_return kept;
}

template <class T>
pipeline<T> make_indexed(indexed_description<T> what) {
  auto kept = std::make_shared<const indexed_description<T>>(std::move(what));
  return pipeline<T>(counted_ptr(new indexed_source<T>(std::move(kept))));
}

}  // namespace lade::detail
