#include <lade/detail/pipeline/index.hpp>
#include <lade/error.hpp>
#include <lade/random.hpp>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace lade::detail {

order_step order_step::shuffle(std::uint64_t seed) { return {.what = kind::shuffle, .seed = seed}; }
order_step order_step::draw(std::shared_ptr<const alias_table> weights, std::uint64_t count,
                            std::uint64_t seed) {
  return {.what = kind::draw, .seed = seed, .count = count, .weights = std::move(weights)};
}
order_step order_step::shard(const shard_part& part) { return {.what = kind::shard, .part = part}; }
order_step order_step::take(std::uint64_t count) { return {.what = kind::take, .count = count}; }
order_step order_step::skip(std::uint64_t count) { return {.what = kind::skip, .count = count}; }
order_step order_step::repeat(std::uint64_t count) {
  return {.what = kind::repeat, .count = count};
}
order_step order_step::rest(std::shared_ptr<const gaps> undelivered, std::uint64_t first) {
  return {.what = kind::rest, .undelivered = std::move(undelivered), .first = first};
}

// The product, saturated at the largest number.
static std::uint64_t times(std::uint64_t size, std::uint64_t count) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(size, count, &product) ? ~std::uint64_t{0} : product;
}

static std::uint64_t draws_from(const order_step& draw, std::uint64_t size) {
  if (draw.weights->size() != size)
    throw error(errc::invalid_argument, "draw",
                fmt::format("the number of weights must be {}, that of the items; it is {}", size,
                            draw.weights->size()));
  return draw.count;
}

// Whether the shard has one item more than the quotient. `left`: the remainder of the division.
static bool has_one_more(const shard_part& part, std::uint64_t left) {
  if (part.remainder == remainder::drop) return false;
  return part.remainder == remainder::keep ? part.rank < left : left > 0;
}

// The number of items of a sequence without end, or of one with more items than can be counted.
static constexpr std::uint64_t endless = ~std::uint64_t{0};

static std::uint64_t size_behind(const order_step& step, std::uint64_t size) {
  const bool ends = step.what == order_step::kind::take || step.what == order_step::kind::draw ||
                    (step.what == order_step::kind::repeat && step.count == 0);
  if (size == endless && !ends) return endless;
  switch (step.what) {
    case order_step::kind::shuffle: return size;
    case order_step::kind::draw: return draws_from(step, size);
    case order_step::kind::shard:
      return size / step.part.world + has_one_more(step.part, size % step.part.world);
    case order_step::kind::take: return std::min(size, step.count);
    case order_step::kind::skip: return size - std::min(size, step.count);
    case order_step::kind::repeat: return times(size, step.count);
    case order_step::kind::rest:
      return step.undelivered->before(step.first + size) - step.undelivered->before(step.first);
  }
  return 0;
}

std::string_view remainder_name(remainder how) noexcept {
  constexpr std::string_view names[] = {"drop", "pad", "wrap", "keep"};
  return names[static_cast<std::size_t>(how)];
}

static std::string text_of(const order_step& step) {
  switch (step.what) {
    case order_step::kind::shuffle: return fmt::format("shuffle {}", step.seed);
    case order_step::kind::draw:
      return fmt::format("draw {} by weights {:x} with seed {}", step.count, step.weights->digest(),
                         step.seed);
    case order_step::kind::take: return fmt::format("take {}", step.count);
    case order_step::kind::skip: return fmt::format("skip {}", step.count);
    case order_step::kind::repeat: return fmt::format("repeat {}", step.count);
    case order_step::kind::shard:
    case order_step::kind::rest: break;
  }
  return {};
}

std::optional<std::uint64_t> size_behind(const std::vector<order_step>& steps,
                                         std::optional<std::uint64_t> items) try {
  for (auto& step : steps) {
    if (step.what == order_step::kind::draw && !items)
      items = step.count;
    else if (items)
      items = size_behind(step, *items);
  }
  if (items == endless) items.reset();
  return items;
} catch (const error&) {  // weights for another number of items
  return std::nullopt;
}

std::vector<std::string> texts_of(const std::vector<order_step>& steps) {
  std::vector<std::string> texts;
  for (auto& step : steps)
    if (auto text = text_of(step); !text.empty()) texts.push_back(std::move(text));
  return texts;
}

std::optional<stretch> stretch_of(const std::vector<order_step>& steps) {
  stretch left;
  for (auto& step : steps) {
    auto size = left.end - left.first;
    if (step.what == order_step::kind::take)
      left.end = left.first + std::min(size, step.count);
    else if (step.what == order_step::kind::skip)
      left.first += std::min(size, step.count);
    else
      return std::nullopt;
  }
  return left;
}

gaps::gaps(const lineage& taken) {
  for (auto& range : taken.ranges()) {
    auto& last = gaps_.back();
    auto count = last.before + (range.first - last.first);
    if (count == last.before) gaps_.pop_back();
    gaps_.push_back({range.last + 1, count});
  }
}

std::uint64_t gaps::at(std::uint64_t n) const noexcept {
  auto behind = std::ranges::upper_bound(gaps_, n, {}, &gap::before);
  auto& found = *std::prev(behind);
  return found.first + (n - found.before);
}

std::uint64_t gaps::before(std::uint64_t position) const noexcept {
  auto behind = std::ranges::upper_bound(gaps_, position, {}, &gap::first);
  if (behind == gaps_.begin()) return 0;
  auto& found = *std::prev(behind);
  auto count = found.before + (position - found.first);
  return behind == gaps_.end() ? count : std::min(count, behind->before);
}

visit_order::visit_order(std::vector<order_step> steps, std::uint64_t items, std::uint64_t epoch)
    : steps_(std::move(steps)), sizes_{items}, epoch_(epoch) {
  for (auto& step : steps_) sizes_.push_back(size_behind(step, sizes_.back()));
}

place visit_order::at(std::uint64_t k) const {
  auto round = epoch_;
  std::optional<std::uint64_t> position;  // behind the last shuffle or draw
  std::uint64_t earlier_rounds = 0;       // of the repeats behind that
  for (auto i = steps_.size(); i-- > 0;) {
    const auto& step = steps_[i];
    const auto size = sizes_[i];
    switch (step.what) {
      case order_step::kind::shuffle:
        if (!position) position = earlier_rounds * size + k;
        k = permute(k, size, random(step.seed, round)());
        break;
      case order_step::kind::draw:
        if (!position) position = earlier_rounds * step.count + k;
        k = step.weights->pick(random(step.seed, round, k));
        break;
      case order_step::kind::shard:
        k = k * step.part.world + step.part.rank;
        if (k >= size) k = step.part.remainder == remainder::pad ? size - 1 : k % size;
        break;
      case order_step::kind::take: break;
      case order_step::kind::skip: k += step.count; break;
      case order_step::kind::repeat: {
        const auto earlier = k / size;
        earlier_rounds = earlier_rounds * step.count + earlier;
        if (earlier > 0) round = random(round, earlier)();
        k %= size;
        break;
      }
      case order_step::kind::rest:
        k = step.undelivered->at(step.undelivered->before(step.first) + k) - step.first;
        break;
    }
  }
  return {k, position.value_or(earlier_rounds * sizes_.front() + k)};
}

visit_order visit_order::rest(std::shared_ptr<const gaps> undelivered, std::uint64_t first) const {
  auto steps = of_all_ranks().steps_;
  steps.push_back(order_step::rest(std::move(undelivered), first + first_position()));
  steps.insert(steps.end(), steps_.begin() + static_cast<std::ptrdiff_t>(steps.size() - 1),
               steps_.end());
  return {std::move(steps), sizes_.front(), epoch_};
}

visit_order visit_order::of_all_ranks() const {
  bool sharded = !steps_.empty() && steps_.back().what == order_step::kind::shard;
  return {{steps_.begin(), steps_.end() - (sharded ? 1 : 0)}, sizes_.front(), epoch_};
}

std::uint64_t visit_order::first_position() const {
  auto all = of_all_ranks();
  return all.size() > 0 ? all.at(0).position : 0;
}

std::string why_inexact(const std::vector<order_step>& steps) {
  using enum order_step::kind;
  bool cut = false;
  for (auto& step : steps) {
    if (step.what == shuffle || step.what == draw) cut = false;
    if (step.what == take || step.what == skip) cut = true;
    if (step.what == repeat && cut) return "take or skip is followed by repeat: put repeat first";
    if (step.what == shard && &step != &steps.back())
      return "shard is not the last step of the source: put it behind the others";
  }
  return {};
}

shard_part part_of(const std::vector<order_step>& steps) {
  return steps.empty() ? shard_part() : steps.back().part;
}

std::uint64_t permute(std::uint64_t i, std::uint64_t size, std::uint64_t key) noexcept {
  auto half_bits =
      static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(size, 2) - 1) + 1) / 2;
  constexpr unsigned rounds = 8;  // with four, ranges of five or ten items have a measurable bias
  auto mask = (std::uint64_t{1} << half_bits) - 1;
  do {
    auto left = i >> half_bits;
    auto right = i & mask;
    for (unsigned step = 0; step < rounds; ++step) {
      auto mixed = left ^ (scramble(right ^ scramble(key + step)) & mask);
      left = right;
      right = mixed;
    }
    i = left << half_bits | right;
  } while (i >= size);
  return i;
}

}  // namespace lade::detail
