// epochs: pass after pass over a pipeline, without a pause between them.

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

// Many runs of one pipeline, each with the next epoch:
//
//   for (auto& epoch : lade::epochs(runtime, batches, 90))
//     for (auto& batch : epoch) train(batch.tensor());
//
// An epoch begins to work when all sources of the one before have come to their end and caches have
// what they keep, while the last items are still on their way: when the consumer comes to it, its
// first items are there.
// No item crosses the boundary, and batches are completed, cut short or dropped at the end of
// each. Every epoch is a run of its own, with its state and statistics. What automatic stages have
// found passes from one to the next: the settings() of all are the same, and freeze() is for all
// that follow. One thread at a time.
template <class T>
class epochs {
 public:
  class iterator;

  // `options` are those of every run, but for the number of the epoch, which counts up from
  // options.epoch, and the state, which is that of the first one. With a state, its epoch and its
  // seed are those of the first and of all runs. Both `where` and what the options refer to must
  // outlive the epochs.
  epochs(runtime& where, pipeline<T> what, std::uint64_t count, run_options options = {})
      : runtime_(where), what_(std::move(what)), options_(std::move(options)), left_(count) {
    options_.epoch = options_.state ? options_.state->epoch : options_.epoch.value_or(0);
    if (options_.state) options_.seed = options_.state->seed;
  }

  // The next epoch's run, which is valid until the next call; null after the last. Ends the one
  // before, also if it has items left.
  run<T>* next() {
    if (!following_) begin_following();
    current_ = std::move(following_);
    if (current_) begin_following();
    return current_.get();
  }

  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  // Has an epoch follow the current one, if there are any left.
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
  std::uint64_t left_;
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
