#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/tokens.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

static std::string doing_windows(const token_file& file) {
  return "read windows of " + file.name();
}

// Whether an integer type can hold a value.
static bool can_hold(element_type type, std::int64_t value) noexcept {
  switch (type) {
    case element_type::u8: return std::in_range<std::uint8_t>(value);
    case element_type::i8: return std::in_range<std::int8_t>(value);
    case element_type::u16: return std::in_range<std::uint16_t>(value);
    case element_type::i16: return std::in_range<std::int16_t>(value);
    case element_type::u32: return std::in_range<std::uint32_t>(value);
    case element_type::i32: return std::in_range<std::int32_t>(value);
    case element_type::u64: return value >= 0;
    default: return true;
  }
}

token_windows::token_windows(token_file file, const token_window_options& options)
    : file_(std::move(file)), options_(options) {
  constexpr std::uint64_t most = std::uint64_t{1} << 48;
  if (options.length == 0 || options.length > most || options.stride > most)
    throw error(errc::invalid_argument, doing_windows(file_),
                "length and stride must be at most 2^48, and length at least 1");
  if (options_.stride == 0) options_.stride = options_.length;
  if (options.pad && !can_hold(file_.type(), options.padding))
    throw error(errc::invalid_argument, doing_windows(file_),
                fmt::format("padding is {}, which no {} can hold", options.padding,
                            lade::name(file_.type())));
  if (options.cross_documents) {
    windows_ = windows_in(file_.size());
    return;
  }
  ends_.reserve(file_.documents());
  for (std::uint64_t i = 0; i < file_.documents(); ++i) {
    windows_ += windows_in(file_.document_begin(i + 1) - file_.document_begin(i));
    ends_.push_back(windows_);
  }
}

// A padded window starts before the end of the tokens, and the previous window does not reach it.
std::uint64_t token_windows::windows_in(std::uint64_t tokens) const noexcept {
  auto length = options_.length;
  auto stride = options_.stride;
  if (!options_.pad) return tokens < length ? 0 : (tokens - length) / stride + 1;
  auto rest = tokens > length ? tokens - length : 0;
  return std::min((tokens + stride - 1) / stride, (rest + stride - 1) / stride + 1);
}

std::uint64_t token_windows::size() const noexcept { return windows_; }

token_windows::place token_windows::place_of(std::uint64_t i) const {
  if (i >= windows_)
    throw error(errc::invalid_argument, doing_windows(file_),
                fmt::format("there is no window {} of {}", i, windows_));
  std::uint64_t begin = 0;
  auto end = file_.size();
  if (!options_.cross_documents) {
    auto document = std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin();
    if (document > 0) i -= ends_[static_cast<std::size_t>(document) - 1];
    begin = file_.document_begin(static_cast<std::uint64_t>(document));
    end = file_.document_begin(static_cast<std::uint64_t>(document) + 1);
  }
  auto first = begin + i * options_.stride;
  return {first, std::min(options_.length, end - first)};
}

// Copies tokens to the memory of a whole window, and pads it.
static tensor padded_tokens(const tensor& tokens, buffer memory,
                            const token_window_options& options) {
  auto item = element_bytes(tokens.type());
  auto count = static_cast<std::size_t>(tokens.shape()[0]);
  std::memcpy(memory.data(), tokens.bytes(), count * item);
  // The low bytes of the number are the narrower number: the machine is little-endian.
  for (auto i = count; i < options.length; ++i)
    std::memcpy(memory.data() + i * item, &options.padding, item);
  return {{tokens.type(), {static_cast<std::int64_t>(options.length)}}, std::move(memory)};
}

tensor token_windows::at(std::uint64_t i) const {
  auto range = place_of(i);
  auto tokens = file_.tokens(range.first, range.count);
  if (range.count == options_.length) return tokens;
  return padded_tokens(tokens, allocate_now(options_.length * element_bytes(file_.type())),
                       options_);
}

task<tensor> token_windows::read(std::uint64_t i) const {
  return read_place(file_, place_of(i), options_);
}

task<tensor> token_windows::read_place(token_file file, place where, token_window_options options) {
  auto tokens = co_await file.read(where.first, where.count);
  if (where.count == options.length) co_return tokens;
  auto memory = co_await allocate(options.length * element_bytes(file.type()));
  co_return padded_tokens(tokens, std::move(memory), options);
}

std::vector<std::int64_t> token_windows::document_begins(std::uint64_t i) const {
  auto range = place_of(i);
  // Search for the first document that starts after the window's first token.
  std::uint64_t low = 0;
  for (auto high = file_.documents(); low < high;) {
    auto middle = low + (high - low) / 2;
    if (file_.document_begin(middle) > range.first)
      high = middle;
    else
      low = middle + 1;
  }
  std::vector<std::int64_t> begins;
  for (; low < file_.documents(); ++low) {
    auto begin = file_.document_begin(low);
    if (begin >= range.first + range.count) break;
    auto in_window = static_cast<std::int64_t>(begin - range.first);
    if (begins.empty() || begins.back() != in_window) begins.push_back(in_window);
  }
  return begins;
}

std::string token_windows::identity() const {
  return fmt::format("{}: {} {} in windows of {} every {}{}{}", file_.identity(), file_.size(),
                     lade::name(file_.type()), options_.length, options_.stride,
                     options_.cross_documents ? "" : ", by document",
                     options_.pad ? fmt::format(", padded with {}", options_.padding) : "");
}

}  // namespace lade::io
