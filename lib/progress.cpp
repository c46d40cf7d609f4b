#include <lade/detail/progress.hpp>
#include <lade/error.hpp>

#include <span>
#include <utility>

namespace lade::detail {

progress::progress(std::optional<state> from)
    : from_(std::move(from)),
      before_(from_ ? from_->delivered : lineage()),
      undelivered_(std::make_shared<const gaps>(before_)),
      parts_to_drop_(from_ ? from_->parts : 0),
      delivered_(from_ ? from_->since : lineage()),
      open_(from_ ? from_->open : lineage()),
      parts_(parts_to_drop_) {}

static void throw_unlike(const std::string& what) {
  throw error(errc::invalid_argument, "go on from a state", what);
}

std::uint64_t progress::first_own() const noexcept {
  auto done = from_ ? from_->since.ranges() : std::span<const lineage::range>();
  return !done.empty() && done.front().first == 0 ? done.front().last + 1 : 0;
}

void progress::refuse(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (refusal_.empty()) refusal_ = why;
}

static std::string joined(const std::vector<std::string>& stages) {
  std::string text;
  for (auto& each : stages) text += (text.empty() ? "" : " | ") + each;
  return text;
}

void progress::begin(std::vector<std::string> stages) {
  std::lock_guard lock(mutex_);
  stages_ = std::move(stages);
  if (!from_) return;
  if (!refusal_.empty()) throw_unlike(refusal_);
  if (!from_->stages.empty() && from_->stages != stages_)
    throw_unlike("it is of the stages " + joined(from_->stages) + ", these are " + joined(stages_));
}

void progress::begin(const dealing& source) {
  std::lock_guard lock(mutex_);
  source_ = source;
  if (!from_) return;
  if (!refusal_.empty()) throw_unlike(refusal_);
  if (!from_->stages.empty() && from_->items != source.items)
    throw_unlike("it is of " + std::to_string(from_->items) + " items, the source has " +
                 std::to_string(source.items));
  if (from_->world > 1 && (from_->world != source.world || from_->rank != source.rank))
    throw_unlike("it is of rank " + std::to_string(from_->rank) + " of " +
                 std::to_string(from_->world) + ", this is rank " + std::to_string(source.rank) +
                 " of " + std::to_string(source.world) + ": merge the states of all ranks");
}

// Parts of one item have the same last position; the first may bring along dropped items.
static bool same_item(const lineage& a, const lineage& b) {
  return !a.empty() && !b.empty() && a.ranges().back().last == b.ranges().back().last;
}

bool progress::is_taken(const lineage& origin) {
  if (parts_to_drop_ == 0 || !same_item(origin, from_->open)) return false;
  --parts_to_drop_;
  return true;
}

void progress::note(const lineage& origin) {
  std::lock_guard lock(mutex_);
  if (origin.empty()) refusal_ = "items come from no position of the source";
  if (!in_parts_) return note_whole(origin);
  if (parts_ > 0 && !same_item(origin, open_)) {
    note_whole(std::exchange(open_, {}));
    parts_ = 0;
  }
  open_.merge(origin);
  ++parts_;
}

void progress::note_whole(const lineage& origin) {
  if (!source_ || source_->world == 1) return delivered_.merge(origin);
  for (auto& range : origin.ranges())
    for (auto position = range.first; position <= range.last; ++position)
      delivered_.add(own_number(position));
}

std::uint64_t progress::first_of_own() const noexcept {
  return undelivered_->before(source_->first) + source_->rank;
}

// What is none of this rank's own stands in for the last that it lacks.
std::uint64_t progress::own_number(std::uint64_t position) const noexcept {
  auto first = first_of_own();
  auto place = undelivered_->before(position);
  bool own = place >= first && (place - first) % source_->world == 0;
  return own ? (place - first) / source_->world : source_->own - 1;
}

state progress::now() const {
  std::lock_guard lock(mutex_);
  if (!refusal_.empty()) throw error(errc::invalid_argument, "state of a run", refusal_);
  state result;
  if (from_) result = *from_;
  if (!source_) return result;
  result.stages = stages_;
  result.delivered = before_;
  result.open = open_;
  result.parts = parts_;
  result.items = source_->items;
  result.rank = source_->rank;
  result.world = source_->world;
  if (source_->world == 1) {
    result.delivered.merge(delivered_);
  } else {
    result.first = first_of_own();
    result.since = delivered_;
  }
  return result;
}

}  // namespace lade::detail
