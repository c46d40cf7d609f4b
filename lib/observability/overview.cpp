#include <lade/detail/observability/overview.hpp>
#include <lade/printable.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace lade::detail {

static std::string seconds_since(clock::time_point since, clock::time_point at) {
  auto seconds = std::chrono::duration<double>(at - since).count();
  return fmt::format("{:.1f} s", std::max(seconds, 0.0));
}

static std::string doing_of(const item_overview& item, clock::time_point at) {
  using enum item_overview::doing;
  switch (item.what) {
    case waits_for_worker: return "waits for a worker";
    case works: return "has been worked on for " + seconds_since(item.since, at);
    case pauses: return "has paused before another call for " + seconds_since(item.since, at);
    case yields_part: return "has a part that waits for earlier ones, or for the next stage";
    case done: return "is done and waits for earlier ones, or for the next stage";
  }
  return {};
}

static std::string feeder_of(const stage_overview& now) {
  using enum stage_overview::feeding;
  switch (now.feeder) {
    case waits_for_input: return "its feeder is starved: it waits for the stage before";
    case waits_for_slot: return "its feeder is blocked: it waits for free slots";
    case waits_for_memory: return "its feeder waits for memory";
    case over: return "its input has ended";
  }
  return {};
}

static std::string line_of(const item_overview& item, clock::time_point at) {
  return fmt::format("  item {}{} {}\n", to_string(item.origin),
                     item.name.empty() ? "" : fmt::format(" ({})", printable(item.name)),
                     doing_of(item, at));
}

std::string to_string(const std::string& stage, const std::optional<item_overview>& item,
                      clock::time_point at) {
  if (!item) return printable(stage) + ": runs inline, and is not called now\n";
  return fmt::format("{}: runs inline\n{}", printable(stage), line_of(*item, at));
}

std::string to_string(const std::string& stage, const stage_overview& now, clock::time_point at) {
  constexpr std::size_t most_shown = 32;
  auto text = fmt::format(
      "{}: {} of {} slots free, {} workers idle, {}{}", printable(stage), now.free, now.slots,
      now.idle_workers, feeder_of(now),
      now.wanted ? ", the next stage waits for it\n" : ", the next stage does not wait\n");
  for (std::size_t i = 0; i < std::min(now.items.size(), most_shown); ++i)
    text += line_of(now.items[i], at);
  if (now.items.size() > most_shown)
    text += fmt::format("  and {} more\n", now.items.size() - most_shown);
  return text;
}

}  // namespace lade::detail
