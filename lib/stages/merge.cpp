#include <lade/error.hpp>
#include <lade/merge.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lade::detail {

merge_options with_weights_of(std::uint64_t epoch, const merge_options& options) {
  auto result = options;
  if (options.weights_of) result.weights = options.weights_of(epoch);
  return result;
}

node_facts zip_facts(std::vector<node_ptr> inputs) {
  const auto row_size = inputs.size();
  auto size = inputs.front()->facts().size();
  for (auto& each : inputs) {
    auto of_input = each->facts().size();
    size = size && of_input ? std::optional(std::min(*size, *of_input)) : std::nullopt;
  }
  return node_facts::behind_all(std::move(inputs), "zip")
      .yielding(cardinality::group, size)
      .holding(row_size)
      .mixing_parts("zip")
      .pairing();
}

static std::string text_of_weights(const merge_options& options) {
  if (options.weights_of) return "of the epoch";
  return fmt::format("{}", fmt::join(options.weights, " "));
}

static node_facts with_order(node_facts facts, const merge_options& options) {
  constexpr std::string_view orders[] = {"turns", "weighted", "arrival"};
  facts = std::move(facts).with("order", orders[static_cast<std::size_t>(options.order)]);
  if (options.order == merge_order::weighted)
    facts = std::move(facts).with("weights", text_of_weights(options)).with("seed", options.seed);
  facts = std::move(facts).with_limit("buffer_bytes", options.buffer_bytes);
  if (options.end == merge_end::last) return facts;
  return std::move(facts).with("end", "first").ending_early();
}

// A merge by arrival has one queue. In the other orders, the merge passes items on.
static std::uint64_t held_by_merge(std::size_t inputs, const merge_options& options) {
  return options.order == merge_order::arrival ? arrivals_of(inputs).ring.slots : 0;
}

// None also if there are more items than can be counted.
static std::optional<std::uint64_t> size_of_all(const std::vector<node_ptr>& inputs) {
  std::uint64_t sum = 0;
  for (auto& each : inputs) {
    auto size = each->facts().size();
    if (!size || __builtin_add_overflow(sum, *size, &sum)) return std::nullopt;
  }
  return sum;
}

node_facts merge_facts(std::vector<node_ptr> inputs, const merge_options& options) {
  auto size = size_of_all(inputs);
  const bool has_all = options.order != merge_order::weighted && options.end == merge_end::last;
  if (!has_all) size.reset();
  const auto held = held_by_merge(inputs.size(), options);
  auto facts = node_facts::behind_all(std::move(inputs), "merge")
                   .yielding(cardinality::one, size)
                   .reordering("merge")
                   .holding(held);
  facts = with_order(std::move(facts), options);
  if (options.order == merge_order::arrival) facts = std::move(facts).on(stage_executor::cpu_pool);
  if (options.end == merge_end::last) return facts;
  return std::move(facts).refusing_state(
      "merge ends with the first of its inputs, which depends on its turns");
}

void require_options_used(const merge_options& options) {
  const bool has_weights = !options.weights.empty() || options.weights_of;
  if (has_weights && options.order != merge_order::weighted)
    throw error(errc::invalid_argument, "merge", "weights need .order = merge_order::weighted");
  if (options.seed != 0 && options.order != merge_order::weighted)
    throw error(errc::invalid_argument, "merge", "seed needs .order = merge_order::weighted");
  if (options.buffer_bytes != unlimited_bytes && options.order != merge_order::arrival)
    throw error(errc::invalid_argument, "merge",
                "buffer_bytes needs .order = merge_order::arrival");
}

turn_order::turn_order(const merge_options& options, std::size_t inputs, std::uint64_t round)
    : options_(options),
      weights_(options.order == merge_order::weighted ? options.weights
                                                      : std::vector<double>(inputs, 1)),
      live_(inputs),
      last_(inputs - 1),
      draw_(options.seed, round) {
  if (weights_.size() != inputs)
    throw error(errc::invalid_argument, "merge",
                fmt::format("the number of weights must be {}, that of its inputs; it is {}",
                            inputs, weights_.size()));
  if (inputs == 0) return;
  support::require_weights("merge", weights_);
  for (auto most = std::ranges::max(weights_); auto& each : weights_)
    each /= most;  // keeps their sum finite
  live_ -= static_cast<std::size_t>(std::ranges::count(weights_, 0.0));
}

std::string turn_order::text() const {
  auto inputs = fmt::format("merge of {}", weights_.size());
  return options_.order == merge_order::weighted
             ? fmt::format("{} by weight, seed {}", inputs, options_.seed)
             : inputs + " in turns";
}

// Skips a range of delivered turns at once. No input ends within such a range, since the turn at
// which an input ends delivers nothing.
void turn_order::skip_delivered() {
  auto ranges = delivered_.ranges();
  if (skipped_ == ranges.size() || turns_ < ranges[skipped_].first) return;
  skip(ranges[skipped_++].last - turns_ + 1);
}

void turn_order::skip(std::uint64_t turns) {
  turns_ += turns;
  if (options_.order == merge_order::weighted) return draw_.discard(turns);
  auto live = weights_.size() - static_cast<std::size_t>(std::ranges::count(weights_, 0.0));
  for (turns %= live; turns > 0; --turns) last_ = next_live();
}

std::size_t turn_order::next_live() const {
  auto next = last_;
  do next = (next + 1) % weights_.size();
  while (weights_[next] == 0);
  return next;
}

std::size_t turn_order::next() {
  skip_delivered();
  ++turns_;
  if (options_.order == merge_order::weighted) {
    auto point = draw_.uniform() * std::accumulate(weights_.begin(), weights_.end(), 0.0);
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      last = i;
      point -= weights_[i];
      if (point < 0) break;
    }
    return last;
  }
  return last_ = next_live();
}

void turn_order::end(std::size_t input) {
  weights_[input] = 0;
  live_ = options_.end == merge_end::first ? 0 : live_ - 1;
}

}  // namespace lade::detail
