#include <lade/error.hpp>
#include <lade/support/require.hpp>
#include <lade/through.hpp>

#include <iterator>
#include <memory>
#include <string>

#include <fmt/format.h>

namespace lade::detail {

void custom_inputs::begin() {
  std::lock_guard lock(mutex_);
  took_ = false;
}

void custom_inputs::take(std::string name, const lineage& origin) {
  std::lock_guard lock(mutex_);
  took_ = true;
  last_ = std::move(name);
  since_last_.merge(origin);
}

void custom_inputs::yielded() {
  std::lock_guard lock(mutex_);
  since_last_ = {};
}

void custom_inputs::end() {
  std::lock_guard lock(mutex_);
  --left_;
}

void custom_inputs::fail() {
  std::lock_guard lock(mutex_);
  failed_ = true;
}

bool custom_inputs::may_skip() const {
  std::lock_guard lock(mutex_);
  return took_ && !failed_;
}

bool custom_inputs::is_over() const {
  std::lock_guard lock(mutex_);
  return left_ == 0;
}

std::string custom_inputs::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

lineage custom_inputs::since_last() const {
  std::lock_guard lock(mutex_);
  return since_last_;
}

custom_stage::custom_stage(std::string name, const through_options& options)
    : name_(std::move(name)),
      rule_(options.lineage),
      policy_{.finally = options.on_error, .budget = options.error_budget} {
  require_budget(name_, options.error_budget);
  if (!skips() && options.error_budget.is_given())
    throw error(errc::invalid_argument, name_, "error_budget has no effect without on_error::skip");
  if (skips() && rule_ == lineage_rule::carried)
    throw error(errc::invalid_argument, name_,
                "on_error::skip would lose the items that a stage of lineage_rule::carried holds");
}

std::shared_ptr<custom_inputs> custom_stage::inputs(std::size_t count) const {
  return skips() ? std::make_shared<custom_inputs>(count) : nullptr;
}

std::exception_ptr custom_stage::failed(const open_context& run, stage_counters& counters,
                                        const custom_inputs* inputs, const lineage& lost) const {
  const bool may_skip = inputs && inputs->may_skip();
  if (!may_skip) return run.failure(counters, {on_error::fail}, {}, {});
  return run.failure(counters, policy_, inputs->last(), lost);
}

std::shared_ptr<lineage_check> custom_stage::check() const {
  if (rule_ == lineage_rule::unspecified) return nullptr;
  return std::make_shared<lineage_check>(rule_ == lineage_rule::carried ? "carried" : "consumed");
}

void lineage_check::fail(const std::string& why) const {
  throw error(errc::invalid_argument, "follow lineage_rule::" + rule_, why);
}

void lineage_check::take(const lineage& origin) {
  std::lock_guard lock(mutex_);
  if (is_off_) return;
  is_off_ = origin.empty();
  for (auto& range : origin.ranges())
    if (meets(range)) is_off_ = true;
  if (is_off_) return in_.clear();
  for (auto& range : origin.ranges()) insert(range);
}

void lineage_check::give(const lineage& origin) {
  std::lock_guard lock(mutex_);
  if (is_off_) return;
  if (origin.empty())
    fail(
        "it yielded an item without lineage: take an input for each item, or yield it with its "
        "held<T>; flat_map makes several items of one");
  for (auto& range : origin.ranges())
    if (!erase(range))
      fail(fmt::format(
          "it yielded an item of positions {}, which it has yielded before or never taken",
          to_string(origin)));
}

void lineage_check::end(const lineage& unyielded) {
  std::lock_guard lock(mutex_);
  if (is_off_) return;
  for (auto& range : unyielded.ranges()) erase(range);
  if (in_.empty()) return;
  lineage missing;
  for (auto& [first, last] : in_) missing.add({first, last});
  fail(fmt::format(
      "it ended without yielding the items that it had taken at positions {}; join() them to "
      "another item, or drop() them",
      to_string(missing)));
}

// Whether the stage holds at least one of these positions.
bool lineage_check::meets(const lineage::range& taken) const {
  auto behind = in_.upper_bound(taken.last);
  return behind != in_.begin() && std::prev(behind)->second >= taken.first;
}

void lineage_check::insert(lineage::range added) {
  auto next = in_.upper_bound(added.first);
  if (next != in_.end() && next->first == added.last + 1) {
    added.last = next->second;
    next = in_.erase(next);
  }
  if (next != in_.begin() && std::prev(next)->second + 1 == added.first)
    std::prev(next)->second = added.last;
  else
    in_.emplace_hint(next, added.first, added.last);
}

// Removes these positions. Returns false, without an effect, if the stage does not hold all of
// them.
bool lineage_check::erase(const lineage::range& gone) {
  auto found = in_.upper_bound(gone.first);
  if (found == in_.begin() || (--found)->second < gone.last) return false;
  auto last = found->second;
  if (found->first == gone.first)
    in_.erase(found);
  else
    found->second = gone.first - 1;
  if (last > gone.last) in_.emplace(gone.last + 1, last);
  return true;
}

}  // namespace lade::detail
