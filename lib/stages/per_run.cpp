#include <lade/detail/observability/stage_counters.hpp>
#include <lade/detail/pipeline/open_context.hpp>
#include <lade/detail/pipeline/run_state.hpp>
#include <lade/per_run.hpp>

namespace lade {

stage_run::stage_run(const detail::open_context& run, const detail::stage_counters& stage)
    : run_(run.run), stage_(&stage), stop_(run.stop) {}

runtime& stage_run::runtime() const noexcept { return run_->runtime(); }

std::uint64_t stage_run::epoch() const noexcept { return run_->epoch(); }

std::uint64_t stage_run::seed() const noexcept { return run_->options().seed; }

trace* stage_run::trace() const noexcept { return run_->options().trace; }

std::string stage_run::stage() const { return stage_->name(); }

void stage_run::warn(const std::string& sentence) const { run_->warn(sentence); }

}  // namespace lade
