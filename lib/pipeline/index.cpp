#include <lade/detail/pipeline/index.hpp>
#include <lade/error.hpp>
#include <lade/random.hpp>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <variant>

#include <fmt/format.h>

namespace lade::detail {

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;

// The product, saturated at the largest number.
static std::uint64_t times(std::uint64_t size, std::uint64_t count) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(size, count, &product) ? ~std::uint64_t{0} : product;
}

static std::uint64_t draws_from(const draw_step& step, std::uint64_t size) {
  if (step.table->size() != size)
    throw error(errc::invalid_argument, "draw",
                fmt::format("{} weights for {} items", step.table->size(), size));
  return step.count;
}

// Whether the shard has one item more than the quotient. `left`: the remainder of the division.
static bool has_one_more(const shard_step& step, std::uint64_t left) {
  if (step.remainder == remainder::drop) return false;
  return step.remainder == remainder::keep ? step.rank < left : left > 0;
}

static std::uint64_t size_behind(const order_step& step, std::uint64_t size) {
  return std::visit(
      overloaded{
          [&](const shuffle_step&) { return size; },
          [&](const draw_step& s) { return draws_from(s, size); },
          [&](const shard_step& s) { return size / s.world + has_one_more(s, size % s.world); },
          [&](const take_step& s) { return std::min(size, s.count); },
          [&](const skip_step& s) { return size - std::min(size, s.count); },
          [&](const repeat_step& s) { return times(size, s.count); },
          [&](const rest_step& s) {
            return s.undelivered->before(s.first + size) - s.undelivered->before(s.first);
          },
      },
      step);
}

std::string_view remainder_name(remainder how) noexcept {
  constexpr std::string_view names[] = {"drop", "pad", "wrap", "keep"};
  return names[static_cast<std::size_t>(how)];
}

static std::string text_of(const order_step& step) {
  return std::visit(overloaded{
                        [](const shuffle_step& s) { return fmt::format("shuffle {}", s.seed); },
                        [](const draw_step& s) {
                          return fmt::format("draw {} by weights {:x} with seed {}", s.count,
                                             s.table->digest(), s.seed);
                        },
                        [](const take_step& s) { return fmt::format("take {}", s.count); },
                        [](const skip_step& s) { return fmt::format("skip {}", s.count); },
                        [](const repeat_step& s) { return fmt::format("repeat {}", s.count); },
                        [](const auto&) { return std::string(); },
                    },
                    step);
}

std::optional<std::uint64_t> size_behind(const std::vector<order_step>& steps,
                                         std::optional<std::uint64_t> items) try {
  for (auto& step : steps) {
    if (auto* draw = std::get_if<draw_step>(&step); draw && !items)
      items = draw->count;
    else if (items)
      items = size_behind(step, *items);
  }
  if (items == ~std::uint64_t{0}) items.reset();  // repeats without end
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
    if (auto* take = std::get_if<take_step>(&step))
      left.end = left.first + std::min(size, take->count);
    else if (auto* skip = std::get_if<skip_step>(&step))
      left.first += std::min(size, skip->count);
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
  std::optional<std::uint64_t> position;  // after the last shuffle or draw
  std::uint64_t earlier_rounds = 0;       // completed rounds of the repeats after that step
  for (auto i = steps_.size(); i-- > 0;) {
    auto size = sizes_[i];
    std::visit(overloaded{
                   [&](const shuffle_step& s) {
                     if (!position) position = earlier_rounds * size + k;
                     k = permute(k, size, random(s.seed, round)());
                   },
                   [&](const draw_step& s) {
                     if (!position) position = earlier_rounds * s.count + k;
                     k = s.table->pick(random(s.seed, round, k));
                   },
                   [&](const shard_step& s) {
                     k = k * s.world + s.rank;
                     if (k >= size) k = s.remainder == remainder::pad ? size - 1 : k % size;
                   },
                   [&](const take_step&) {},
                   [&](const skip_step& s) { k += s.count; },
                   [&](const repeat_step& s) {
                     auto earlier = k / size;
                     earlier_rounds = earlier_rounds * s.count + earlier;
                     if (earlier > 0) round = random(round, earlier)();
                     k %= size;
                   },
                   [&](const rest_step& s) {
                     k = s.undelivered->at(s.undelivered->before(s.first) + k) - s.first;
                   },
               },
               steps_[i]);
  }
  return {k, position.value_or(earlier_rounds * sizes_.front() + k)};
}

visit_order visit_order::rest(std::shared_ptr<const gaps> undelivered, std::uint64_t first) const {
  auto steps = of_all_ranks().steps_;
  steps.emplace_back(rest_step{std::move(undelivered), first + first_position()});
  steps.insert(steps.end(), steps_.begin() + static_cast<std::ptrdiff_t>(steps.size() - 1),
               steps_.end());
  return {std::move(steps), sizes_.front(), epoch_};
}

visit_order visit_order::of_all_ranks() const {
  bool sharded = !steps_.empty() && std::holds_alternative<shard_step>(steps_.back());
  return {{steps_.begin(), steps_.end() - (sharded ? 1 : 0)}, sizes_.front(), epoch_};
}

std::uint64_t visit_order::first_position() const {
  auto all = of_all_ranks();
  return all.size() > 0 ? all.at(0).position : 0;
}

std::string why_inexact(const std::vector<order_step>& steps) {
  bool cut = false;
  for (auto& step : steps) {
    if (std::holds_alternative<shuffle_step>(step) || std::holds_alternative<draw_step>(step))
      cut = false;
    if (std::holds_alternative<take_step>(step) || std::holds_alternative<skip_step>(step))
      cut = true;
    if (std::holds_alternative<repeat_step>(step) && cut)
      return "take or skip is followed by repeat: put repeat first";
    if (std::holds_alternative<shard_step>(step) && &step != &steps.back())
      return "shard is not the last step of the source: put it behind the others";
  }
  return {};
}

shard_step part_of(const std::vector<order_step>& steps) {
  auto* last = steps.empty() ? nullptr : std::get_if<shard_step>(&steps.back());
  return last ? *last : shard_step{0, 1, remainder::drop};
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
