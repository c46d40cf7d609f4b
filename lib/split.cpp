#include <lade/detail/split.hpp>

#include <algorithm>
#include <string>

namespace lade::detail {

void underway::enter() const noexcept { split_->enter(path_); }
void underway::leave() const noexcept { split_->leave(path_); }

split_base::~split_base() {
  if (where_.split && !at_rest_) where_.split->leave(where_.path);
}

void split_base::watch(const path_place& where, std::stop_source paths) {
  watching_ = true;
  where_ = where;
  paths_ = std::move(paths);
  if (where_.split) where_.split->enter(where_.path);
}

std::optional<split_base::standstill> split_base::stuck() const {
  std::lock_guard lock(mutex_);
  return stuck_;
}

void split_base::note_asking(bool asks) {
  {
    std::lock_guard lock(mutex_);
    asking_ = asks;
  }
  look();
}

void split_base::note_made(std::size_t path) {
  {
    std::lock_guard lock(mutex_);
    ++branches_[path].results;
  }
  look();
}

void split_base::note_awaited(std::size_t path) {
  {
    std::lock_guard lock(mutex_);
    awaited_ = path;
  }
  look();
}

void split_base::note_taken(std::size_t path) {
  wait_list woken;
  {
    std::lock_guard lock(mutex_);
    awaited_ = std::nullopt;
    if (path == batches || branches_[path].results == 0) return;
    --branches_[path].results;
    wake_input(woken);
  }
  woken.resume_all();
}

void split_base::enter(std::size_t path) noexcept {
  std::lock_guard lock(mutex_);
  ++branches_[path].inside;
}

void split_base::leave(std::size_t path) noexcept {
  {
    std::lock_guard lock(mutex_);
    --branches_[path].inside;
  }
  look();
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

void split_base::open(std::size_t path) {
  std::lock_guard lock(mutex_);
  if (branches_[path].opened)
    throw error(errc::invalid_argument, "open path " + std::to_string(path),
                "it takes its items twice: put repeat before or behind the paths");
  branches_[path].opened = true;
}

bool split_base::end_path(std::size_t path) {
  wait_list woken;
  bool last = false;
  {
    std::lock_guard lock(mutex_);
    branches_[path].ended = true;
    last = std::ranges::all_of(branches_, &branch::ended);
    wake_input(woken);
  }
  woken.resume_all();
  return last;
}

void split_base::look() {
  if (!watching_) return;
  bool turned = false;
  bool rests = false;
  bool stop = false;
  {
    std::lock_guard lock(mutex_);
    bool in_vain = is_awaited_in_vain();
    auto full = std::ranges::find_if(branches_, [this](auto& path) { return is_full(path); });
    bool held_up = !input_.empty() && (wanted_ == batches || full != branches_.end());
    stop = in_vain && held_up && !stuck_;
    if (stop) stuck_ = {*awaited_, static_cast<std::size_t>(full - branches_.begin())};
    rests = in_vain && asking_;
    turned = rests != std::exchange(at_rest_, rests);
  }
  if (turned && where_.split && rests) where_.split->leave(where_.path);
  if (turned && where_.split && !rests) where_.split->enter(where_.path);
  if (stop) request_stop(paths_);
}

bool split_base::has_room() const {
  if (wanted_ == batches) return in_flight_ < buffer_;
  auto fits = [this](const branch& path) {
    return path.ended || (path.waiting < buffer_ && !is_full(path));
  };
  return wanted_ == all_paths ? std::ranges::all_of(branches_, fits) : fits(branches_[wanted_]);
}

void split_base::wake_input(wait_list& woken) {
  if (input_.empty() || !has_room()) return;
  // For a single path as a channel does: once for many items.
  bool later = wanted_ < batches && branches_[wanted_].waiting > buffer_ / 2;
  if (later && !branches_[wanted_].ended) return;
  woken = input_.settle_all();
}

bool split_base::is_full(const branch& path) const {
  return !path.ended && path.results >= buffer_;
}

// What is waited for does not come without another item.
bool split_base::is_awaited_in_vain() const {
  if (!awaited_) return false;
  if (*awaited_ == batches) return in_flight_ == 0;
  auto& path = branches_[*awaited_];
  return !path.consumer.empty() && path.inside == 0;
}

}  // namespace lade::detail
