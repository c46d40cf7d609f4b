#include <lade/detail/stages/split.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace lade::detail {

const path_place* watched_place(const path_place* inner) noexcept {
  while (inner && !inner->split->is_watching()) inner = inner->around.get();
  return inner;
}

void in_flight_mark::enter() const noexcept { where_->split->enter(where_->path, is_); }
void in_flight_mark::leave() const noexcept { where_->split->leave(where_->path, is_); }

// The begin of a wait, or its end.
static void record(waiting_time& wait, bool begins) noexcept {
  auto now = clock::now();
  if (begins)
    wait.begin(now);
  else
    wait.end(now);
}

split_base::~split_base() {
  if (where_ && mark_) where_->split->leave(where_->path, *mark_);
}

void split_base::watch(const open_context& run, std::stop_source paths) {
  watching_ = true;
  around_ = run.path;
  where_ = watched_place(around_.get());
  demand_ = std::make_shared<demand>(run.wanted);
  memory_ = &run.run->runtime().memory();
  paths_ = std::move(paths);
  mark_ = in_flight_mark::kind::item;
  if (where_) where_->split->enter(where_->path, *mark_);
}

std::optional<split_base::standstill> split_base::stuck() const {
  std::lock_guard lock(mutex_);
  return stuck_;
}

void split_base::record_asking(bool asks) {
  if (counters_) record(counters_->input_wait, asks);
  if (!watching_) return;
  {
    std::lock_guard lock(mutex_);
    asking_ = asks;
  }
  look();
}

void split_base::record_blocked(bool blocked) noexcept {
  if (counters_) record(counters_->output_wait, blocked);
}

void split_base::record_depth() noexcept {
  if (counters_) counters_->depth.set(this, results_);
}

void split_base::clear_depth() noexcept {
  results_ = 0;
  record_depth();
}

void split_base::record_made(std::size_t path, std::uint64_t bytes) {
  {
    std::lock_guard lock(mutex_);
    ++branches_[path].results;
    branches_[path].behind.add(bytes);
    ++results_;
    record_depth();
  }
  look();
}

void split_base::record_awaited(std::size_t path) {
  {
    std::lock_guard lock(mutex_);
    awaited_ = path;
  }
  look();
}

void split_base::record_taken(std::size_t path, std::uint64_t bytes) {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    awaited_ = std::nullopt;
    if (demand_) demand_->await(demand::none);
    if (path == batches || branches_[path].results == 0) return;
    --branches_[path].results;
    branches_[path].behind.remove(bytes);
    --results_;
    record_depth();
    wake_input(woken);
  }
  woken.resume_all();
}

void split_base::enter(std::size_t path, in_flight_mark::kind is) noexcept {
  std::lock_guard lock(mutex_);
  ++branches_[path].count(is);
}

void split_base::leave(std::size_t path, in_flight_mark::kind is) noexcept {
  {
    std::lock_guard lock(mutex_);
    --branches_[path].count(is);
  }
  look();
}

void split_base::replace(std::size_t path, std::optional<in_flight_mark::kind> old,
                         std::optional<in_flight_mark::kind> by) {
  std::lock_guard lock(mutex_);
  if (by) ++branches_[path].count(*by);
  if (old) --branches_[path].count(*old);
}

void split_base::begin_batch() {
  std::lock_guard lock(mutex_);
  ++in_flight_;
}

void split_base::end_batch() {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    --in_flight_;
    wake_input(woken);
  }
  woken.resume_all();
}

void split_base::end_input(std::exception_ptr failure) {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
    if (!failure_) failure_ = std::move(failure);
    woken = input_.settle_all();
    for (auto& path : branches_)
      while (auto* consumer = path.consumer.settle_first()) woken.push_back(*consumer);
  }
  woken.resume_all();
}

void split_base::rethrow_failure() const {
  std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void split_base::open(std::size_t path, const planned_node& at, const planned_node& begin) {
  std::lock_guard lock(mutex_);
  if (branches_[path].opened)
    throw error(errc::invalid_argument, fmt::format("open path {}", path),
                "it takes its items twice: put repeat before or behind the paths");
  if (begin.rules.cache != at.rules.cache)
    throw error(errc::invalid_argument,
                fmt::format("{}: open path {}", at.node->facts().name(), path),
                "a cache in a path would mix the items of several runs: put it before "
                "or behind the paths");
  branches_[path].opened = true;
}

bool split_base::end_path(std::size_t path) {
  wait_list woken;
  bool last = false;
  {
    std::lock_guard lock(mutex_);
    branches_[path].ended = true;
    branches_[path].waiting = 0;
    branches_[path].before.remove_all();
    last = std::ranges::all_of(branches_, &branch::ended);
    wake_input(woken);
  }
  woken.resume_all();
  return last;
}

void split_base::begin_consumer_wait() {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    wake_input(woken);
  }
  woken.resume_all();
  look();
}

void split_base::look() {
  if (!watching_) return;
  bool stop = false;
  bool needs = false;
  bool turned = false;
  std::optional<in_flight_mark::kind> now;
  {
    std::lock_guard lock(mutex_);
    needs = needs_another();
    demand_->await(needs ? demand::next : demand::none);
    const bool in_vain = is_awaited_in_vain();
    auto full = std::ranges::find_if(branches_, [this](auto& path) { return is_full(path); });
    bool held_up = !input_.empty() && (wanted_ == batches || full != branches_.end());
    stop = in_vain && held_up && !stuck_;
    if (stop) stuck_ = {*awaited_, static_cast<std::size_t>(full - branches_.begin())};
    if (!needs || !asking_)
      now = in_flight_mark::kind::item;
    else if (!in_vain)
      now = in_flight_mark::kind::child;
    turned = mark_ != now;
    if (turned && where_) where_->split->replace(where_->path, mark_, now);
    mark_ = now;
  }
  if (needs) memory_->reconsider();
  if (turned && where_) where_->split->look();
  if (stop) request_stop(paths_);
}

bool split_base::has_capacity(std::size_t where) const {
  std::lock_guard lock(mutex_);
  return over_ || fits(where);
}

bool split_base::fits(std::size_t where) const {
  if (where == batches) return in_flight_ < buffer_;
  auto one_fits = [this](const branch& path) {
    return path.ended || (path.waiting < buffer_ && holds_bytes_for_one(path) && !is_full(path));
  };
  if (where == all_paths) return std::ranges::all_of(branches_, one_fits);
  auto& path = branches_[where];
  return one_fits(path) || (!is_full(path) && holds_bytes_for_one(path) &&
                            waiting_in_all() < buffer_ * branches_.size());
}

bool split_base::holds_bytes_for_one(const branch& path) const {
  return path.waiting == 0 || path.before.leaves(1, bytes_);
}

std::size_t split_base::waiting_in_all() const {
  std::size_t sum = 0;
  for (auto& path : branches_) sum += path.waiting;
  return sum;
}

void split_base::wake_input(wait_list& woken) {
  if (input_.empty() || !fits(wanted_)) return;
  if (wanted_ < batches && !branches_[wanted_].ended && has_enough(branches_[wanted_])) return;
  woken = input_.settle_all();
}

// Whether the input may stay suspended, so that it is woken once for many items: the path and all
// paths together have more than half of the capacity queued, and no consumer waits.
bool split_base::has_enough(const branch& path) const {
  if (path.waiting <= buffer_ / 2 || waiting_in_all() <= buffer_ * branches_.size() / 2)
    return false;
  return std::ranges::all_of(branches_, [](auto& each) { return each.consumer.empty(); });
}

// Whether the link behind the path takes no result more. By its rules: see
// slot_ring_options::bytes.
bool split_base::is_full(const branch& path) const {
  if (path.ended || path.results == 0) return false;
  return path.results >= buffer_ || !path.behind.leaves(1, bytes_);
}

// An item was handed to the consumer that waited in the path.
void split_base::record_given(std::size_t path) noexcept {
  if (demand_ && (!awaited_ || awaited_ == path || *awaited_ == batches))
    demand_->await(demand::none);
}

// Whether the awaited result or batch requires another item of the input, unless a child holds one.
bool split_base::needs_another() const {
  if (!awaited_) return false;
  if (*awaited_ == batches) return in_flight_ == 0;
  auto& path = branches_[*awaited_];
  return !path.consumer.empty() && path.items == 0;
}

bool split_base::is_awaited_in_vain() const {
  return needs_another() && (*awaited_ == batches || branches_[*awaited_].children == 0);
}

}  // namespace lade::detail
