#include <lade/detail/pipeline/run_state.hpp>
#include <lade/detail/stages/split.hpp>
#include <lade/lineage.hpp>

#include <exception>
#include <memory>
#include <utility>

namespace lade::detail {

task<> distribute(split_base& to, run_state& run, generator in, std::unique_ptr<distributor> how) {
  std::exception_ptr failure;
  try {
    lineage origin;
    while (true) {
      if (how->waits_for != split_base::chosen_path) co_await to.capacity(how->waits_for);
      void* item = nullptr;
      {
        split_base::asking waiting(to);
        item = co_await in.next();
      }
      if (!item) break;
      origin.merge(in.origin());
      if (run.failures().is_behind()) co_await run.failures().caught_up();
      auto chosen = how->choose(item, in.origin());
      if (chosen.later) chosen.path = co_await std::move(*chosen.later);
      if (chosen.path == split_base::dropped) continue;
      if (how->waits_for == split_base::chosen_path) co_await to.capacity(chosen.path);
      how->give(chosen.path, item, std::exchange(origin, {}));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) how->fail();
  to.end_input(failure);
  how->end();
}

}  // namespace lade::detail
