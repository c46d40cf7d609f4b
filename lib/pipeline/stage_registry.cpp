#include <lade/detail/pipeline/stage_key.hpp>
#include <lade/detail/pipeline/stage_registry.hpp>

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace lade::detail {

struct stage_registry::contents {
  mutable std::mutex mutex;  // guards all members
  std::deque<stage_counters> stages;
  std::unordered_map<stage_key, stage_counters*, stage_key_hash> by_key;
  std::vector<const overviewed*> watched;
};

stage_registry::stage_registry() : in_(std::make_unique<contents>()) {}

stage_registry::~stage_registry() = default;

stage_counters& stage_registry::add(const planned_node& stage, std::size_t inputs) {
  std::lock_guard lock(in_->mutex);
  auto& known = in_->by_key[stage.key()];
  if (known) return *known;
  auto& added = in_->stages.emplace_back(stage.facts().name(), stage.name, stage.from_end);
  added.inputs = static_cast<unsigned>(inputs);
  known = &added;
  return added;
}

void stage_registry::record_workers(stage_counters& stage, const stage_workers& resources) {
  std::lock_guard lock(in_->mutex);
  stage.resources = resources;
  stage.workers = resources.workers;
  stage.slots = resources.slots;
}

void stage_registry::record_groups(stage_counters& stage, std::string groups) {
  std::lock_guard lock(in_->mutex);
  stage.groups = std::move(groups);
}

std::string stage_registry::name_of(std::uint64_t stage_number) const {
  std::lock_guard lock(in_->mutex);
  auto stage = std::ranges::find(in_->stages, stage_number, &stage_counters::number);
  return stage == in_->stages.end() ? std::string() : stage->name();
}

std::vector<std::string> stage_registry::names() const {
  std::lock_guard lock(in_->mutex);
  std::vector<std::string> names;
  for (auto stage = in_->stages.rbegin(); stage != in_->stages.rend(); ++stage)
    names.push_back(stage->groups.empty() ? stage->name() : stage->name() + ' ' + stage->groups);
  return names;
}

std::vector<stage_statistics> stage_registry::statistics(clock::time_point now) const {
  std::lock_guard lock(in_->mutex);
  std::vector<stage_statistics> result;
  for (auto stage = in_->stages.rbegin(); stage != in_->stages.rend(); ++stage)
    result.push_back(stage->snapshot(now));
  return result;
}

std::uint64_t stage_registry::allocated_bytes() const {
  std::lock_guard lock(in_->mutex);
  std::uint64_t bytes = 0;
  for (auto& stage : in_->stages) bytes += stage.allocated.load(std::memory_order_relaxed);
  return bytes;
}

std::uint64_t stage_registry::items_begun() const {
  std::lock_guard lock(in_->mutex);
  std::uint64_t of_sources = 0;
  std::uint64_t most_taken = 0;
  for (auto& stage : in_->stages) {
    std::uint64_t out = stage.out;
    std::uint64_t in = stage.in;
    if (in == 0 || stage.inputs == 0) of_sources += out;
    most_taken = std::max(most_taken, in);
  }
  return std::max(of_sources, most_taken);
}

void stage_registry::watch(const overviewed& stage) {
  std::lock_guard lock(in_->mutex);
  in_->watched.push_back(&stage);
}

void stage_registry::unwatch(const overviewed& stage) noexcept {
  std::lock_guard lock(in_->mutex);
  std::erase(in_->watched, &stage);
}

std::string stage_registry::overviews(clock::time_point at) const {
  std::lock_guard lock(in_->mutex);
  std::string text;
  for (auto stage = in_->watched.rbegin(); stage != in_->watched.rend(); ++stage)
    text += (*stage)->overview(at);
  return text;
}

}  // namespace lade::detail
