// epochs: several passes over a pipeline, without a pause between them.

#pragma once

#include <lade/pipeline.hpp>
#include <lade/run.hpp>
#include <lade/run_options.hpp>
#include <lade/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

namespace lade {

// Several runs of one pipeline, one per epoch:
//
//   for (auto& epoch : lade::epochs(runtime, batches, 90))
//     for (auto& batch : epoch) train(batch.tensor());
//
// The next epoch starts while the last items of the current one are in flight: as soon as all its
// sources are at their end and its caches have all items that they keep. So the first items of an
// epoch are ready when the consumer reaches it.
//
// No item crosses the boundary between epochs. At the end of each, the last batch is completed, cut
// short or dropped. Every epoch is a separate run, with its own state and statistics. Automatic
// stages share their tuning between epochs: settings() is the same for all, and freeze() holds for
// all later epochs. One thread at a time.
template <class T>
class epochs {
 public:
  class iterator;

  // `options` apply to every run, except the epoch and the state. The epoch counts up from
  // options.epoch, or from 0. The first run resumes from options.state; then the state's epoch is
  // the first epoch, and its seed is that of all runs. `where` and all objects that the options
  // refer to must outlive the epochs.
  epochs(runtime& where, pipeline<T> what, std::uint64_t count, run_options options = {})
      : runtime_(where), what_(std::move(what)), options_(std::move(options)), left_(count) {
    options_.epoch = options_.state ? options_.state->epoch : options_.epoch.value_or(0);
    if (options_.state) options_.seed = options_.state->seed;
  }

  // Ends the current run, even if it has items left. Returns the next epoch's run, or null after
  // the last one. The run is valid until the next call.
  run<T>* next() {
    if (!following_) begin_following();
    current_ = std::move(following_);
    if (current_) begin_following();
    return current_.get();
  }

  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  // Starts the run that follows the current one, if any epochs are left.
  void begin_following() {
    if (left_ == 0) return;
    --left_;
    auto before = current_ ? current_->state_ : nullptr;
    following_.reset(new run<T>(runtime_, what_, options_, before));
    options_.state.reset();
    ++*options_.epoch;
  }

  runtime& runtime_;
  pipeline<T> what_;
  run_options options_;
  std::uint64_t left_;  // epochs that have not been started
  std::unique_ptr<run<T>> current_;
  std::unique_ptr<run<T>> following_;
};

// A single-pass input iterator.
template <class T>
class epochs<T>::iterator {
 public:
  using value_type = run<T>;
  using difference_type = std::ptrdiff_t;

  explicit iterator(epochs& of) : epochs_(&of), run_(of.next()) {}

  run<T>& operator*() const noexcept { return *run_; }
  run<T>* operator->() const noexcept { return run_; }
  iterator& operator++() {
    run_ = epochs_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const iterator& at, std::default_sentinel_t) noexcept { return !at.run_; }

 private:
  epochs* epochs_;
  run<T>* run_;
};

}  // namespace lade
