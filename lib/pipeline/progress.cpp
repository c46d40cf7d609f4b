#include <lade/detail/pipeline/progress.hpp>
#include <lade/detail/runtime/executor.hpp>
#include <lade/error.hpp>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace lade::detail {

progress::progress(std::optional<state> from, bool required, bool other_data)
    : from_(std::move(from)),
      before_(from_ ? from_->delivered : lineage()),
      undelivered_(std::make_shared<const gaps>(before_)),
      required_(required),
      other_data_(other_data),
      amid_parts_(from_ && from_->parts > 0),
      own_(from_ ? from_->own : lineage()),
      open_(from_ ? from_->open : lineage()),
      parts_(from_ ? from_->parts : 0),
      open_members_(from_ ? from_->open_members : 0) {}

static constexpr auto resuming = "resume from a state";

static void throw_unlike(const std::string& what) {
  throw error(errc::invalid_argument, resuming, what);
}

const state::source* progress::source_before(std::uint64_t begin) const noexcept {
  if (!from_) return nullptr;
  auto found = std::ranges::find(from_->sources, begin, &state::source::begin);
  return found != from_->sources.end() ? &*found : nullptr;
}

const lineage& progress::own_delivered(std::uint64_t begin) const noexcept {
  static const lineage none;
  auto* before = source_before(begin);
  return before ? before->since : none;
}

lineage progress::delivered_here() const {
  auto positions = before_;
  if (from_) positions.merge(from_->own);
  return positions;
}

void progress::refuse(const std::string& why) {
  std::lock_guard lock(mutex_);
  refuse_locked(why);
}

void progress::refuse_locked(const std::string& why) {
  if (refusal_.empty()) refusal_ = why;
  forget();
  if (required_) throw error(errc::invalid_argument, "begin a run with require_state", refusal_);
}

// Without a state, the record of deliveries is useless. It would grow with the run: each item of a
// sharded stream is a separate range.
void progress::forget() {
  delivered_ = {};
  own_ = {};
  open_ = {};
  for (auto& each : sources_) each.second.own_delivered = {};
  for (auto& each : choosers_) each.on_their_way.clear();
}

static std::string joined(const std::vector<std::string>& stages) {
  std::string text;
  for (auto& each : stages) text += (text.empty() ? "" : " | ") + each;
  return text;
}

static std::string in_order(const std::vector<std::string>& steps) {
  return steps.empty() ? "in the order of the source" : "in the order " + joined(steps);
}

static std::string items_in_words(std::uint64_t items) {
  return items == 0 ? "an unknown number of items" : fmt::format("{} items", items);
}

// An upper bound for the numbers of choices in a valid state: each delivered item has at least one
// position, and fewer than 2^30 items are in flight.
std::uint64_t progress::most_choices() const noexcept {
  auto positions = from_->delivered.size() + from_->own.size();
  for (auto& each : from_->sources) positions += each.since.size();
  return positions + (std::uint64_t{1} << 30);
}

static std::string in_quotes(const std::string& identity) {
  return identity.empty() ? "a data set without a name"
                          : fmt::format("the data set \"{}\"", identity);
}

static constexpr auto hint = "; to resume nevertheless, set run_options::other_data";

listing_log::listing_log(progress& of, std::uint64_t begin, bool has_names)
    : progress_(of), begin_(begin) {
  std::lock_guard lock(progress_.mutex_);
  auto* before = progress_.source_before(begin);
  if (!before || before->listed == 0 || progress_.other_data_) return;
  if (!has_names)
    throw_unlike(
        fmt::format("it is of {}, the source lists no names{}", in_quotes(before->identity), hint));
  expected_ = before->listed;
  expected_names_ = before->identity;
}

void listing_log::add(std::string_view name) {
  ++count_;
  names_.add(name);
  if (count_ == expected_ && names_.text() != expected_names_)
    throw_unlike(fmt::format(
        "the first {} items of the listing have changed: the state is of {}, they are of {}{}",
        count_, in_quotes(expected_names_), in_quotes(names_.text()), hint));
  if (!is_compared()) return;
  std::lock_guard lock(progress_.mutex_);
  auto& source = progress_.sources_.at(begin_);
  source.listed = count_;
  source.names = names_;
}

void listing_log::end() const {
  if (!is_compared())
    throw_unlike(
        fmt::format("it had listed {} items, now there are {}{}", expected_, count_, hint));
}

void progress::begin(std::vector<std::string> stages) {
  std::lock_guard lock(mutex_);
  if (from_) require_same(stages);
  stages_ = std::move(stages);
  begun_ = true;
}

void progress::require_same(const std::vector<std::string>& stages) const {
  require_possible(*from_, resuming);
  if (!refusal_.empty()) throw_unlike(refusal_);
  if (!from_->stages.empty() && from_->stages != stages)
    throw_unlike(
        fmt::format("it is of the stages {}, these are {}", joined(from_->stages), joined(stages)));
  for (auto& each : from_->chosen)
    if (!each.delivered.empty() && each.delivered.ranges().back().last > most_choices())
      throw_unlike("it has more choices than items");
  if (from_->parts > 0 && !in_parts_)
    throw_unlike(
        "it has an item that was delivered in part, and no stage of this pipeline splits items: "
        "use the stages of the saved run");
}

void progress::announce(std::uint64_t rank, std::uint64_t world) {
  std::lock_guard lock(mutex_);
  if (!part_) part_ = {rank, world};
  if (part_ != std::pair(rank, world))
    refuse_locked("its sources are not sharded in the same way: shard all of them or none");
}

void progress::settle() noexcept {
  settled_ = true;
  settled_.notify_all();
}

void progress::begin(const assignment& source) {
  std::lock_guard lock(mutex_);
  if (from_) require_same(source);
  assigned_source added{source, own_delivered(source.begin)};
  auto* before = source_before(source.begin);
  if (before && before->listed > 0 && !other_data_) {
    added.how.identity = before->identity;
    added.listed = before->listed;
  }
  sources_.insert_or_assign(source.begin, std::move(added));
}

void progress::require_same(const assignment& source) const {
  if (!refusal_.empty()) throw_unlike(refusal_);
  auto* before = source_before(source.begin);
  if (before && before->order != source.order)
    throw_unlike(fmt::format(
        "it has items {}, this source has them {}: steps, counts and seeds must be the same",
        in_order(before->order), in_order(source.order)));
  if (before && before->items != source.items)
    throw_unlike(fmt::format("it is of {}, the source has {}", items_in_words(before->items),
                             items_in_words(source.items)));
  bool names_to_come = before && before->listed > 0 && source.identity.empty();
  if (before && !names_to_come && before->identity != source.identity && !other_data_)
    throw_unlike(fmt::format("it is of {}, the source is of {}{}", in_quotes(before->identity),
                             in_quotes(source.identity), hint));
  if (from_->parts > 0 && from_->world != source.world)
    throw_unlike(
        fmt::format("it has an item that was delivered in part: the number of ranks must stay {}, "
                    "this run has {}",
                    from_->world, source.world));
  if (from_->world > 1 && (from_->world != source.world || from_->rank != source.rank))
    throw_unlike(
        fmt::format("it is of rank {} of {}, this is rank {} of {}: merge the states of all ranks",
                    from_->rank, from_->world, source.rank, source.world));
}

void progress::require_length(std::uint64_t begin, std::uint64_t count, std::uint64_t span) const {
  if (other_data_ || count >= span) return;
  auto ranges = before_.ranges();
  auto behind = std::ranges::lower_bound(ranges, begin + count, {}, &lineage::range::last);
  if (behind == ranges.end() || behind->first >= begin + span) return;
  throw_unlike(fmt::format(
      "the source has ended after {} items, but later ones had been delivered{}", count, hint));
}

// Whether two lineages are of parts of one item. Parts have the same last position; the first part
// may also have the positions of items that were dropped before.
static bool same_item(const lineage& a, const lineage& b) {
  return !a.empty() && !b.empty() && a.ranges().back().last == b.ranges().back().last;
}

static bool overlaps(const lineage& a, const lineage& b) {
  auto of_b = b.ranges();
  return std::ranges::any_of(a.ranges(), [&](const lineage::range& range) {
    auto found = std::ranges::lower_bound(of_b, range.first, {}, &lineage::range::last);
    return found != of_b.end() && found->first <= range.last;
  });
}

// The open item is first: the items before it in the order have been delivered, or were dropped and
// belong to it.
bool progress::is_taken(const lineage& origin) {
  if (!amid_parts_) return false;
  bool is_first = dropped_ == 0;
  if (same_item(origin, from_->open) && (!is_first || !in_groups_ || is_same_group(origin))) {
    dropped_ = origin.part();
    amid_parts_ = dropped_ < from_->parts;
    return dropped_ <= from_->parts;
  }
  // An item before the open one that was dropped then, and is yielded now.
  if (is_first && !in_groups_ && without(origin, from_->open).empty()) return true;
  // Otherwise the open item, or the rest of its parts, has been dropped now.
  if ((is_first && in_groups_) || !overlaps(origin, from_->open))
    throw_unlike(why_not_again(origin));
  amid_parts_ = false;
  return false;
}

// A group with the same positions may have other members: a member that fails is dropped, but the
// group keeps its position.
bool progress::is_same_group(const lineage& origin) const noexcept {
  return origin == from_->open && (from_->open_members == 0 ||
                                   from_->open_members == part_lineage::members_of_whole(origin));
}

void progress::end() const {
  if (amid_parts_ && (in_groups_ || dropped_ > 0)) throw_unlike(why_not_again({}));
}

std::string progress::why_not_again(const lineage& instead) const {
  auto text = fmt::format("{} of the item at positions {} had been delivered",
                          part_lineage::in_words(from_->parts), to_string(from_->open));
  if (dropped_ > 0)
    text += ", but it has fewer parts now";
  else if (instead.empty())
    text += ", but this run has no such item";
  else if (instead == from_->open)
    text += ", but it has other members now";
  else
    text += fmt::format(", but this run has an item at positions {} instead", to_string(instead));
  std::lock_guard lock(mutex_);
  for (auto& stage : consuming_)
    text += fmt::format(
        "; {} does not follow lineage_rule::consumed if what it yields depends on how many items "
        "it has taken before, or on which input is next",
        stage);
  return text + "; to deliver the whole item again, clear state::open and state::parts";
}

void progress::expect_parts() {
  std::lock_guard lock(mutex_);
  in_parts_ = true;
}

void progress::expect_groups() { in_groups_ = true; }

void progress::expect_rule(std::string stage) {
  std::lock_guard lock(mutex_);
  consuming_.push_back(std::move(stage));
}

steps_before progress::begin_steps(std::uint64_t count) {
  std::lock_guard lock(mutex_);
  if (steps_ > 0)
    throw error(errc::invalid_argument, "equal_steps",
                "there is more than one: it is the last stage of a pipeline");
  if (from_ && from_->steps > 0 && from_->steps != count)
    throw_unlike(
        fmt::format("it is of an epoch of {} steps, this one has {}: keep the global batch size, "
                    "or set equal_steps_options::steps",
                    from_->steps, count));
  steps_ = count;
  if (from_) steps_taken_ = {from_->steps_taken, from_->steps_repeated};
  return steps_taken_;
}

choice_log progress::choosing(const std::string& what) {
  std::lock_guard lock(mutex_);
  if (!refusal_.empty()) return {*this, ~std::size_t{0}};
  choosers_.push_back({{.of = what}, {}});
  return {*this, choosers_.size() - 1};
}

// None if the rank or their number differs: the choices of a rank are among its own items.
const state::choices& progress::choices_before(std::size_t stage) const {
  static const state::choices none;
  if (!from_ || stage >= from_->chosen.size() || part_ != std::pair(from_->rank, from_->world))
    return none;
  auto& before = from_->chosen[stage];
  return before.of == choosers_[stage].made.of ? before : none;
}

const state::choices& choice_log::before() const {
  std::lock_guard lock(progress_.mutex_);
  return progress_.choices_before(stage_);
}

void choice_log::note(std::uint64_t number, const lineage& origin) {
  std::lock_guard lock(progress_.mutex_);
  if (progress_.refusal_.empty())
    progress_.choosers_[stage_].on_their_way.emplace(origin.latest(), number);
}

void choice_log::record_items(std::uint64_t count) {
  std::lock_guard lock(progress_.mutex_);
  if (progress_.refusal_.empty()) progress_.choosers_[stage_].made.items = count;
}

void progress::record_choices(const lineage& delivered) {
  for (auto& each : choosers_)
    for (auto& range : delivered.ranges()) {
      auto first = each.on_their_way.lower_bound(range.first);
      auto end = each.on_their_way.upper_bound(range.last);
      for (auto made = first; made != end; ++made) each.made.delivered.add(made->second);
      each.on_their_way.erase(first, end);
    }
}

void progress::note(const lineage& origin) {
  std::lock_guard lock(mutex_);
  try {
    record_locked(origin);
  } catch (const std::bad_alloc&) {
    refuse_locked("there was no memory to record an item");
    raise(ENOMEM, "record an item that has been taken");
  }
}

void progress::record_locked(const lineage& origin) {
  if (steps_ > 0) {
    ++steps_taken_.taken;
    if (origin.empty()) {
      ++steps_taken_.repeated;
      return;
    }
  }
  if (origin.empty()) refuse_locked("items come from no position of the source");
  if (!refusal_.empty()) return;
  if (!in_parts_ || origin.part() == 0) {
    if (std::exchange(parts_, 0) > 0) record_whole(std::exchange(open_, {}));
    return record_whole(origin);
  }
  if (!part_lineage::is_ordered(origin))
    return refuse_locked("parts of parts are too many to be numbered");
  // If the last parts of the previous item were dropped, these parts have its positions too.
  if (parts_ == 0 || !same_item(origin, open_)) {
    auto before = std::exchange(open_, without(origin, open_));
    if (parts_ > 0) record_whole(before);
  }
  open_members_ = part_lineage::members_of_whole(origin);
  parts_ = origin.part();
}

// The last item of a shard also has the last position of the shard. If `range` is that position and
// the range before is in the same shard, fills the gap between them. So a delivered shard is one
// range.
static lineage::range up_to_end_of_shard(const lineage::range& range, const lineage::range* before,
                                         const assignment& source) {
  auto shard_of = [&](std::uint64_t at) { return (at - source.begin) / source.shard_span; };
  bool ends_one = (range.first - source.begin) % source.shard_span == source.shard_span - 1;
  if (!ends_one || !before || before->last < source.begin) return range;
  if (shard_of(before->last) != shard_of(range.first)) return range;
  return {before->last + 1, range.last};
}

void progress::record_whole(const lineage& origin) {
  record_choices(origin);
  const lineage::range* before = nullptr;
  for (auto& range : origin.ranges()) {
    record_range(range, before);
    before = &range;
  }
}

void progress::record_range(const lineage::range& range, const lineage::range* before) {
  auto behind = sources_.upper_bound(range.first);
  if (behind == sources_.begin()) return delivered_.add(range);  // from a cache
  auto& source = std::prev(behind)->second;
  auto& how = source.how;
  if (how.shard_span > 0)
    return (how.world > 1 ? own_ : delivered_).add(up_to_end_of_shard(range, before, how));
  if (how.world == 1) return delivered_.add(range);
  for (auto position = range.first; position <= range.last; ++position)
    source.own_delivered.add(own_number(how, position));
}

std::uint64_t progress::first_of_own(const assignment& source) const noexcept {
  return undelivered_->before(source.first) + source.rank;
}

// The number of this rank's item at a position. A position of another rank is a repeat that pads
// this rank: it counts as the last item.
std::uint64_t progress::own_number(const assignment& source,
                                   std::uint64_t position) const noexcept {
  auto first = first_of_own(source);
  auto place = undelivered_->before(position);
  bool own = place >= first && (place - first) % source.world == 0;
  return own ? (place - first) / source.world : source.own - 1;
}

// Whether the record of a source in the state stays valid until that source begins. Not if several
// ranks share the rest of a single run, since their items differ, nor for another data set.
bool progress::keeps_sources_before(std::uint64_t world) const noexcept {
  return from_ && !other_data_ && (from_->world > 1 || world == 1);
}

state progress::now() const {
  if (!settled_ && this_executor)
    throw error(errc::wrong_thread, "state of a run",
                "its stages have not been opened yet: take an item first, or ask in an ordinary "
                "thread");
  settled_.wait(false);
  std::lock_guard lock(mutex_);
  if (!refusal_.empty()) throw error(errc::invalid_argument, "state of a run", refusal_);
  state result;
  if (from_) result = *from_;
  if (sources_.empty() || (from_ && !begun_)) return result;
  result.stages = stages_;
  result.delivered = before_;
  result.delivered.merge(delivered_);
  result.own = own_;
  result.open = open_;
  result.parts = parts_;
  result.open_members = open_members_;
  result.steps = steps_;
  result.steps_taken = steps_taken_.taken;
  result.steps_repeated = steps_taken_.repeated;
  result.rank = sources_.begin()->second.how.rank;
  result.world = sources_.begin()->second.how.world;
  std::erase_if(result.sources, [&](auto& each) {  // keeps sources that have not started yet
    return !keeps_sources_before(result.world) || sources_.contains(each.begin);
  });
  for (auto& [begin, source] : sources_)
    result.sources.push_back(
        {begin, source.how.items, source.names ? source.names->text() : source.how.identity,
         source.listed, source.how.order, result.world > 1 ? first_of_own(source.how) : 0,
         source.own_delivered});
  std::ranges::sort(result.sources, {}, &state::source::begin);
  result.chosen.clear();
  for (std::size_t stage = 0; stage < choosers_.size(); ++stage) {
    auto& choices = result.chosen.emplace_back(choosers_[stage].made);
    choices.delivered.merge(choices_before(stage).delivered);
    choices.items = std::max(choices.items, choices_before(stage).items);
  }
  return result;
}

}  // namespace lade::detail
