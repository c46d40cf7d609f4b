#include "decoding_times.hpp"

#include <algorithm>
#include <utility>

extern "C" {
#include <libavcodec/packet.h>
}

namespace lade::media {

void decoding_times::add(av_packet next) {
  shown_.push(next->pts);
  held_.push_back(std::move(next));
}

void decoding_times::find_start() {
  auto sorted = shown_;
  start_ = sorted.top();
  sorted.pop();
  if (!sorted.empty()) step_ = std::max<std::int64_t>(1, sorted.top() - start_);
}

std::int64_t decoding_times::next_time() {
  const auto number = taken_++;
  if (number < delay_) return start_ - static_cast<std::int64_t>(delay_ - number) * step_;
  const auto time = shown_.top();
  shown_.pop();
  return time;
}

av_packet decoding_times::take(bool last) {
  const bool enough = held_.size() > delay_ || (taken_ > 0 && !held_.empty());
  if (!enough && (!last || held_.empty())) return nullptr;
  if (taken_ == 0) find_start();
  auto next = std::move(held_.front());
  held_.pop_front();
  next->dts = next_time();
  return next;
}

}  // namespace lade::media
