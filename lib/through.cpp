#include <lade/error.hpp>
#include <lade/through.hpp>

#include <iterator>
#include <memory>
#include <string>

namespace lade::detail {

opening custom_stage::before(const opening& run) const {
  if (rule_ == lineage_rule::carried) return run.reordering(name_.c_str());
  if (rule_ == lineage_rule::unspecified)
    run.refuse_state(name_ +
                     " does not say which of its input each of its items is made of: give it "
                     "{.lineage = lade::lineage_rule::consumed} if of all that it took since the "
                     "item before, or lineage_rule::carried if it yields held<T>");
  if (run.parts_behind) run.progress().expect_rule(name_);
  return run.mixing_parts(name_.c_str());
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
        "it yielded an item that is made of nothing it has taken since the item before; flat_map "
        "makes several items of one");
  for (auto& range : origin.ranges())
    if (!erase(range))
      fail("it yielded an item of positions " + to_string(origin) +
           ", which it has yielded before or never taken");
}

void lineage_check::end(const lineage& unyielded) {
  std::lock_guard lock(mutex_);
  if (is_off_) return;
  for (auto& range : unyielded.ranges()) erase(range);
  if (in_.empty()) return;
  lineage missing;
  for (auto& [first, last] : in_) missing.add({first, last});
  fail("it ended and never yielded what it had taken at positions " + to_string(missing) +
       "; join or drop() what is left out");
}

// Whether one of these positions is in.
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

// Returns whether all of these positions were in.
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
