// The steps that pipelines are made of.

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

// A step, whatever its items are.
class node_base : public counted {
 public:
  explicit node_base(node_facts facts) noexcept : facts_(std::move(facts)) {}

  const node_facts& facts() const noexcept { return facts_; }

  // The live generator of one run, which also does what hooks, profiles and long chains need.
  // `run`: the context of the stage that takes the items.
  generator open_in(const open_context& run) const;

  // How many items it yields.
  task<std::uint64_t> count(const open_context& run) const;

  // For runs that have opened their stages. Warns if a stage that depends on the epoch is in its
  // second run for an epoch that nobody has chosen.
  static void warn_of_same_epoch(run_state& run);

 protected:
  // An item that has been moved away from its generator.
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
  mutable unsigned runs_without_epoch_ = 0;    // that chose alike
  mutable std::optional<std::uint64_t> seed_;  // of the first of them
};

// One step of a pipeline, from the source to here. Immutable, shared by all pipelines made from it.
template <class T>
class node : public node_base {
 public:
  using node_base::node_base;

  // Makes the live generator of one run, in which this is the stage that is opened. Called on the
  // run's pool.
  virtual async_generator<T> open(const open_context& run) const = 0;

  // Of a source that is reached by index: the same in another order. Null of all others.
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
