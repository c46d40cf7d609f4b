#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/pad.hpp>
#include <lade/support/require.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace lade {

std::int64_t packed_batch::longest() const noexcept {
  auto* begins = offsets_.data<std::int64_t>();
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < size(); ++i) longest = std::max(longest, begins[i + 1] - begins[i]);
  return longest;
}

namespace detail {

sequence_view sequence_of(const tensor& sequence) {
  auto refuse = [&](std::string_view why) {
    throw error(errc::invalid_data,
                fmt::format("take tensor {} as a sequence", to_string(sequence.shape())), why);
  };
  if (sequence.rank() == 0) refuse("it has no dimension");
  if (!sequence.where().is_host_accessible()) refuse("it is not in host memory");
  if (!sequence.contiguous()) refuse("its elements are not in one piece");
  return {sequence.type(), sequence.shape().tail(), sequence.shape()[0], sequence.bytes()};
}

static std::string kind_of(const sequence_view& sequence) {
  return std::string(name(sequence.type)) + to_string(sequence.step);
}

static void require_alike(const sequence_view& one, const sequence_view& other) {
  if (one.type == other.type && one.step == other.step) return;
  throw error(errc::invalid_data, "collate sequences",
              fmt::format("elements of {} and of {}", kind_of(one), kind_of(other)));
}

static void require_all_alike(std::span<const sequence_view> sequences) {
  if (sequences.empty()) throw error(errc::invalid_data, "collate sequences", "none");
  for (auto& each : sequences) require_alike(sequences.front(), each);
}

static tensor allocate_tensor(const tensor_spec& spec, const context& execution) {
  return {spec, allocate_now(execution, spec.bytes())};
}

static std::size_t step_bytes(const sequence_view& sequence) {
  return tensor_spec{sequence.type, sequence.step}.bytes();
}

static void copy_steps(const sequence_view& from, std::byte* to) {
  if (auto bytes = static_cast<std::size_t>(from.length) * step_bytes(from))
    std::memcpy(to, from.data, bytes);
}

template <class E>
static bool represents(double value) {
  if constexpr (std::integral<E>) {
    auto end = std::ldexp(1.0, std::numeric_limits<E>::digits);
    return value == std::trunc(value) && value < end &&
           value >= static_cast<double>(std::numeric_limits<E>::min());
  }
  return true;
}

// Calls function(E()) with the type of an element.
template <class F>
static auto with_element(element_type type, F function) {
  switch (type) {
    case element_type::boolean: return function(bool());
    case element_type::u8: return function(std::uint8_t());
    case element_type::i8: return function(std::int8_t());
    case element_type::i16: return function(std::int16_t());
    case element_type::u32: return function(std::uint32_t());
    case element_type::i32: return function(std::int32_t());
    case element_type::u64: return function(std::uint64_t());
    case element_type::i64: return function(std::int64_t());
    case element_type::f32: return function(float());
    case element_type::f64: return function(double());
    default: return function(std::uint16_t());
  }
}

static void require_value(element_type type, double value) {
  bool half = type == element_type::f16 || type == element_type::bf16;
  bool fits = with_element(type, [&](auto e) { return represents<decltype(e)>(value); });
  if (fits && (!half || value == 0)) return;
  throw error(errc::invalid_argument, "fill up with " + support::number_text(value),
              "no value for elements of " + std::string(name(type)));
}

// Fills the bytes [begin, end) with elements of that value.
static void fill_up(element_type type, double value, std::byte* begin, std::byte* end) {
  with_element(type, [&](auto e) {
    using element = decltype(e);
    std::fill(reinterpret_cast<element*>(begin), reinterpret_cast<element*>(end),
              static_cast<element>(value));
  });
}

void require_padding(const pad_options& options, const std::string& stage) {
  auto refuse = [&](std::string_view why) { throw error(errc::invalid_argument, stage, why); };
  support::require_count(stage, "length", options.length, {.most = support::most_elements});
  support::require_count(stage, "multiple_of", options.multiple_of,
                         {.least = 1, .most = support::most_in_batch});
  require_concurrency(stage, options.concurrency, 1);
  require_budget(stage, options.error_budget, options.on_error);
  if (options.length % options.multiple_of != 0)
    refuse(fmt::format("a length of {}, which is no multiple of {}", options.length,
                       options.multiple_of));
}

void require_packing(const pack_options& options, const std::string& stage) {
  require_concurrency(stage, options.concurrency, 1);
  require_budget(stage, options.error_budget, options.on_error);
}

void require_rows(const pack_rows_options& options, const std::string& stage) {
  support::require_count(stage, "length", options.length,
                         {.least = 1, .most = support::most_elements});
  support::require_count(stage, "open_rows", options.open_rows,
                         {.least = 1, .most = support::most_in_batch});
  require_budget(stage, options.error_budget, options.on_error);
}

void require_fields(std::span<const std::string> fields, const std::string& stage) {
  if (fields.empty())
    throw error(errc::invalid_argument, stage,
                "of samples, the fields that become tensors must be set (fields)");
}

// Rounds up to a multiple. Throws error(limit_exceeded) if the result exceeds 63 bits.
static std::int64_t round_up_length(std::uint64_t length, std::uint64_t multiple) {
  auto missing = length % multiple ? multiple - length % multiple : 0;
  std::int64_t rounded = 0;
  if (__builtin_add_overflow(length, missing, &rounded))
    throw error(errc::limit_exceeded, "pad", "too great a length");
  return rounded;
}

static std::int64_t padded_length(std::span<const sequence_view> sequences,
                                  const pad_options& options) {
  auto longest =
      static_cast<std::uint64_t>(std::ranges::max(sequences, {}, &sequence_view::length).length);
  if (options.length == 0) return round_up_length(longest, options.multiple_of);
  if (longest > options.length)
    throw error(errc::limit_exceeded, fmt::format("pad to {}", options.length),
                fmt::format("a sequence of {}", longest));
  return round_up_length(options.length, 1);
}

padded_batch pad_sequences(std::span<const sequence_view> sequences, const pad_options& options,
                           const context& execution) {
  require_all_alike(sequences);
  auto& first = sequences.front();
  require_value(first.type, options.value);
  auto count = static_cast<std::int64_t>(sequences.size());
  auto row = first.step.prepend(padded_length(sequences, options));
  auto data = allocate_tensor({first.type, row.prepend(count)}, execution);
  auto lengths = allocate_tensor({element_type::i64, {count}}, execution);
  auto row_bytes = tensor_spec{first.type, row}.bytes();
  auto* next = data.bytes();
  auto* length = lengths.data<std::int64_t>();
  for (auto& each : sequences) {
    copy_steps(each, next);
    fill_up(each.type, options.value,
            next + static_cast<std::size_t>(each.length) * step_bytes(each), next + row_bytes);
    next += row_bytes;
    *length++ = each.length;
  }
  return {std::move(data), std::move(lengths)};
}

static void pad_field(std::span<const sample> samples, const std::string& name,
                      const pad_options& options, const context& execution,
                      std::vector<named_tensor>& out) {
  std::vector<sequence_view> sequences;
  for (auto& each : samples) {
    auto& value = stackable_field(each, name);
    if (value.type() != field::kind::tensor)
      throw error(errc::invalid_data, fmt::format("pad field {} of {}", name, each.name()),
                  "it is a number, and a tensor in other samples");
    sequences.push_back(sequence_of(value.tensor()));
  }
  auto padded = pad_sequences(sequences, options, execution);
  out.emplace_back(name, padded.data());
  out.emplace_back(name + ".lengths", padded.lengths());
}

sample_batch pad_samples(std::vector<sample> samples, std::span<const std::string> fields,
                         const pad_options& options, const context& execution) {
  if (samples.empty()) throw error(errc::invalid_data, "pad samples", "none");
  std::vector<named_tensor> tensors;
  for (auto& name : fields) {
    auto& first = stackable_field(samples.front(), name);
    if (first.type() == field::kind::tensor && first.tensor().rank() > 0)
      pad_field(samples, name, options, execution, tensors);
    else
      tensors.emplace_back(name, stack_field(samples, name, execution));
  }
  for (auto& each : samples) each = without_contents(std::move(each), fields);
  return {std::move(tensors), std::move(samples)};
}

packed_batch pack_sequences(std::span<const sequence_view> sequences, const context& execution) {
  require_all_alike(sequences);
  auto& first = sequences.front();
  auto count = static_cast<std::int64_t>(sequences.size());
  auto offsets = allocate_tensor({element_type::i64, {count + 1}}, execution);
  auto* offset = offsets.data<std::int64_t>();
  *offset = 0;
  for (auto& each : sequences) {
    if (__builtin_add_overflow(*offset, each.length, offset + 1))
      throw error(errc::limit_exceeded, "pack", "too great a length");
    ++offset;
  }
  auto data = allocate_tensor({first.type, first.step.prepend(*offset)}, execution);
  auto* next = data.bytes();
  for (auto& each : sequences) {
    copy_steps(each, next);
    next += static_cast<std::size_t>(each.length) * step_bytes(each);
  }
  return {std::move(data), std::move(offsets)};
}

void row_packer::require_fit(const sequence_view& sequence) {
  auto length = static_cast<std::int64_t>(options_.length);
  if (sequence.length > length && !options_.split)
    throw error(errc::limit_exceeded, fmt::format("pack into rows of {}", length),
                fmt::format("a sequence of {}", sequence.length));
  if (row_spec_) return require_alike({row_spec_->type, row_spec_->shape.tail(), 0, {}}, sequence);
  require_value(sequence.type, options_.value);
  tensor_spec spec{sequence.type, sequence.step.prepend(length)};
  spec.elements();  // throws if they are too many
  row_spec_ = spec;
}

void row_packer::add(const sequence_view& sequence, const lineage& origin) {
  require_fit(sequence);
  auto piece = sequence;
  auto length = static_cast<std::int64_t>(options_.length);
  if (sequence.length <= length) return put(piece, origin);
  part_lineage origins(origin, 0);
  for (auto left = sequence.length; left > 0; left -= length) {
    piece.length = std::min(left, length);
    put(piece, origins.next());
    piece.data += options_.length * step_bytes(sequence);
  }
}

std::vector<row_packer::row> row_packer::rest() {
  std::vector<row> last;
  while (!open_.empty()) last.push_back(close(0));
  return last;
}

void row_packer::put(const sequence_view& piece, const lineage& origin) {
  auto number = row_for(piece.length);
  auto& into = open_[number];
  auto at = static_cast<std::size_t>(into.offsets.back());
  copy_steps(piece, into.data.bytes() + at * step_bytes(piece));
  into.offsets.push_back(into.offsets.back() + piece.length);
  into.origin.merge(origin);
  if (free_elements(into) > 0) return;
  try {
    complete(number);
  } catch (const std::exception&) {}  // without memory, the row stays open for now
}

// Moves an open row to the complete ones. If this throws, the row stays open.
void row_packer::complete(std::size_t number) {
  done_.reserve(done_.size() + 1);
  done_.push_back(close(number));
}

std::size_t row_packer::row_for(std::int64_t length) {
  auto fitting =
      std::ranges::find_if(open_, [&](auto& each) { return free_elements(each) >= length; });
  if (fitting != open_.end()) return static_cast<std::size_t>(fitting - open_.begin());
  auto memory = allocate_tensor(*row_spec_, context_);
  if (open_.size() == options_.open_rows) {
    auto fullest =
        std::ranges::min_element(open_, {}, [&](auto& each) { return free_elements(each); });
    complete(static_cast<std::size_t>(fullest - open_.begin()));
  }
  open_.push_back({std::move(memory), {0}, {}});
  return open_.size() - 1;
}

std::int64_t row_packer::free_elements(const open_row& at) const noexcept {
  return static_cast<std::int64_t>(options_.length) - at.offsets.back();
}

row_packer::row row_packer::close(std::size_t number) {
  auto count = static_cast<std::int64_t>(open_[number].offsets.size());
  auto offsets = allocate_tensor({element_type::i64, {count}}, context_);
  auto closed = std::move(open_[number]);
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(number));
  auto unused = closed.data.slice(closed.offsets.back(), closed.data.shape()[0]);
  fill_up(row_spec_->type, options_.value, unused.bytes(), unused.bytes() + unused.spec().bytes());
  std::ranges::copy(closed.offsets, offsets.data<std::int64_t>());
  return {packed_batch(std::move(closed.data), std::move(offsets)), std::move(closed.origin)};
}

node_facts collating(node_facts of_stage, unsigned concurrency, const thread_pool* pool,
                     const failure_policy& policy) {
  auto facts = std::move(of_stage).with(policy).on(pool);
  if (concurrency == automatic) return std::move(facts).with("concurrency", "automatic");
  facts = std::move(facts).holding(2 * std::uint64_t{concurrency});
  return concurrency > 1 ? std::move(facts).with("concurrency", concurrency) : facts;
}

static node_facts with_value(node_facts facts, double value) {
  return value == 0 ? facts : std::move(facts).with("value", fmt::format("{}", value));
}

}  // namespace detail

detail::node_facts pad_stage::facts(detail::node_ptr in) const {
  auto facts = detail::collating(detail::node_facts::behind(std::move(in), "pad", name_),
                                 options_.concurrency, options_.pool,
                                 {.finally = options_.on_error, .budget = options_.error_budget});
  if (options_.length > 0) facts = std::move(facts).with("length", options_.length);
  if (options_.multiple_of > 1) facts = std::move(facts).with("multiple_of", options_.multiple_of);
  return detail::with_value(std::move(facts), options_.value);
}

pipeline<sample_batch> pad_stage::attach(const pipeline<std::vector<sample>>& in) const {
  detail::require_fields(fields_, name_);
  return detail::make_pipeline<sample_batch>(
      facts(in.last()), [in, self = *this](const detail::open_context& run) {
        return detail::open_collating<sample_batch>(
            in, run, self.options_,
            [options = self.options_, fields = self.fields_](std::vector<sample>&& samples,
                                                             const context& execution) {
              return detail::pad_samples(std::move(samples), fields, options, execution);
            });
      });
}

// Holds the open rows, and one that is full. The rows of a sequence that is split are full
// together, and their number has no limit.
detail::node_facts pack_rows_stage::facts(detail::node_ptr in) const {
  auto facts = detail::node_facts::behind(std::move(in), "pack_rows", name_)
                   .yielding(cardinality::group)
                   .reordering("pack_rows")
                   .with("length", options_.length)
                   .with("open_rows", options_.open_rows)
                   .with({.finally = options_.on_error, .budget = options_.error_budget});
  facts = detail::with_value(std::move(facts), options_.value);
  if (!options_.split) return std::move(facts).holding(options_.open_rows + 1);
  return std::move(facts).with_flag("split", true).refusing_state("pack_rows splits sequences");
}

}  // namespace lade
