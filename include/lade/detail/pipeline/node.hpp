// node: a step of a pipeline, which opens a generator for each run.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/detail/common/counted.hpp>
#include <lade/detail/pipeline/index.hpp>
#include <lade/detail/pipeline/node_facts.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/lineage.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace lade::detail {

// A step, independent of the type of its items.
class node_base : public counted {
 public:
  explicit node_base(node_facts facts) noexcept : facts_(std::move(facts)) {}

  const node_facts& facts() const noexcept { return facts_; }

  // Opens the generator of the step for one run, with the support for hooks, profiles and long
  // chains. `run`: the context of the stage that takes the items.
  generator open_in(const open_context& run) const;

  // Returns how many items the step yields.
  task<std::uint64_t> count(const open_context& run) const;

  // For runs that have opened their stages. Warns if a stage that depends on the epoch runs a
  // second time for an epoch that was not set.
  static void warn_of_same_epoch(run_state& run);

 protected:
  // An item that was moved out of its generator.
  struct moved {
    counted_ptr<const counted> owner;
    void* item;
  };

 private:
  struct moved_with_lineage {
    moved what;
    lineage origin;
  };

  virtual generator begin(const open_context& run) const = 0;
  virtual moved move(void* item) const = 0;

  generator open_stage(const open_context& run) const;
  generator open_profiled(const open_context& run) const;
  static generator make_all(generator items, counted_ptr<const node_base> of, open_context run);

  bool repeats_choices(std::optional<std::uint64_t> seed) const;

  const node_facts facts_;
  mutable std::mutex mutex_;
  mutable unsigned runs_without_epoch_ = 0;    // runs with the same choices
  mutable std::optional<std::uint64_t> seed_;  // seed of the first such run
};

// A step of a pipeline. Immutable, and shared by all pipelines that contain it.
template <class T>
class node : public node_base {
 public:
  using node_base::node_base;

  // Opens the generator for the run in whose context this step is the opened stage. Called on the
  // run's pool.
  virtual async_generator<T> open(const open_context& run) const = 0;

  // For a source with access by index: the same source in another order. Null for all others.
  virtual counted_ptr<const node> then(const order_step&) const { return {}; }

 private:
  struct moved_item final : counted {
    explicit moved_item(T&& from) : item(std::move(from)) {}
    T item;
  };

  generator begin(const open_context& run) const final { return open(run); }
  moved move(void* item) const final {
    counted_ptr kept(new moved_item(std::move(*static_cast<T*>(item))));
    auto* address = &kept->item;
    return {std::move(kept), address};
  }
};

}  // namespace lade::detail
