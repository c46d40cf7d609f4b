#include "stored_values.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/checksum.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

static constexpr std::size_t signature_bytes = 8;
static constexpr std::size_t sum_bytes = 4;

// Not insert(): GCC 14 issues a false warning.
void stored_writer::bytes(std::span<const std::byte> value) {
  number(static_cast<std::uint64_t>(value.size()));
  const auto before = bytes_.size();
  bytes_.resize(before + value.size());
  std::copy(value.begin(), value.end(), bytes_.data() + before);
}

buffer stored_writer::sealed(std::string_view signature, std::uint32_t version) const {
  stored_writer head;
  for (const char each : signature) head.number(each);
  head.number(version);
  const auto body = head.bytes_.size() + bytes_.size();
  buffer file = allocate_now(body + sum_bytes);
  auto* next = std::copy(head.bytes_.begin(), head.bytes_.end(), file.data());
  next = std::copy(bytes_.begin(), bytes_.end(), next);
  stored_writer sum;
  sum.number(crc32c(file.bytes().first(body)).value());
  std::copy(sum.bytes_.begin(), sum.bytes_.end(), next);
  return file;
}

stored_reader::stored_reader(std::span<const std::byte> file, std::string_view signature,
                             std::uint32_t version, std::string doing)
    : left_(file), doing_(std::move(doing)) {
  const auto expected = std::as_bytes(std::span(signature));
  if (file.size() < signature_bytes + sizeof(version) + sum_bytes ||
      !std::equal(expected.begin(), expected.end(), file.begin()))
    refuse("it begins with other bytes than " + std::string(signature));
  left_ = file.subspan(file.size() - sum_bytes);
  const auto sum = number<std::uint32_t>();
  left_ = file.subspan(signature_bytes, file.size() - signature_bytes - sum_bytes);
  if (const auto stored = number<std::uint32_t>(); stored != version)
    throw error(errc::unsupported, doing_, fmt::format("it has version {}", stored));
  if (crc32c(file.first(file.size() - sum_bytes)).value() != sum)
    refuse("its bytes do not have its sum");
}

std::span<const std::byte> stored_reader::take(std::size_t bytes) {
  if (bytes > left_.size()) refuse("it ends before its contents");
  const auto taken = left_.first(bytes);
  left_ = left_.subspan(bytes);
  return taken;
}

std::size_t stored_reader::count(std::size_t element_bytes) {
  const auto count = number<std::uint64_t>();
  if (count > left_.size() / element_bytes) refuse("it ends before its contents");
  return static_cast<std::size_t>(count);
}

std::string stored_reader::text() {
  const auto stored = bytes();
  return {reinterpret_cast<const char*>(stored.data()), stored.size()};
}

rational stored_reader::fraction() {
  const auto numerator = number<std::int64_t>();
  const auto denominator = number<std::int64_t>();
  if (denominator <= 0) refuse("a fraction has no denominator above 0");
  return {numerator, denominator};
}

std::optional<rational> stored_reader::optional_fraction() {
  if (number<std::uint8_t>(0, 1) == 0) return std::nullopt;
  return fraction();
}

void stored_reader::end() const {
  if (!left_.empty()) refuse("it has bytes after its contents");
}

void stored_reader::refuse(std::string_view reason) const {
  throw error(errc::invalid_data, doing_, reason);
}

}  // namespace lade::media
