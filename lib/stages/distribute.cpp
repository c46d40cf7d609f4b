#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/drain.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/error.hpp>
#include <lade/lineage.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace lade::detail {

// Passes the items of the input to the paths: a sink for drain(). An item takes a task only if
// something must be awaited for it.
class path_sink {
 public:
  path_sink(split_base& to, run_state& run, std::stop_token stop,
            std::unique_ptr<distributor> how) noexcept
      : to_(to), run_(run), stop_(std::move(stop)), how_(std::move(how)) {}

  auto capacity() noexcept { return to_.capacity(how_->waits_for); }

  struct input_wait : split_base::asking {
    explicit input_wait(path_sink& of) : asking(of.to_) {}
  };

  std::optional<task<>> put(void* item, const lineage& origin) {
    if (stop_.stop_requested()) throw error(errc::stopped, "pass items to paths");
    origin_.merge(origin);
    if (run_.failures().is_behind()) return put_later(item, origin);
    auto chosen = how_->choose(item, origin);
    if (chosen.later || must_wait(chosen.path)) return give_later(item, std::move(chosen));
    give(chosen.path, item);
    return std::nullopt;
  }

  void put_rest(const lineage&) noexcept {}

  void end(const std::exception_ptr& failure) {
    if (failure) how_->fail();
    to_.end_input(failure);
    how_->end();
  }

 private:
  task<> put_later(void* item, const lineage& origin) {
    co_await run_.failures().caught_up();
    auto chosen = how_->choose(item, origin);
    co_await give_later(item, std::move(chosen));
  }

  task<> give_later(void* item, distributor::choice chosen) {
    if (chosen.later) chosen.path = co_await std::move(*chosen.later);
    if (must_wait(chosen.path)) co_await to_.capacity(chosen.path);
    give(chosen.path, item);
  }

  bool must_wait(std::size_t path) const noexcept {
    return how_->waits_for == split_base::chosen_path && path != split_base::dropped &&
           !to_.has_capacity(path);
  }

  void give(std::size_t path, void* item) {
    if (path != split_base::dropped) how_->give(path, item, std::exchange(origin_, {}));
  }

  split_base& to_;
  run_state& run_;
  std::stop_token stop_;
  std::unique_ptr<distributor> how_;
  lineage origin_;  // of the items since the last one that was passed on
};

task<> distribute(split_base& to, run_state& run, std::stop_token stop, generator in,
                  std::unique_ptr<distributor> how) {
  return drain(std::move(in), path_sink(to, run, std::move(stop), std::move(how)));
}

}  // namespace lade::detail
