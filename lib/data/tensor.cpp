#include <lade/error.hpp>
#include <lade/tensor.hpp>

#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace lade {

static void require(bool condition, const tensor_spec& spec, std::string_view why) {
  if (condition) return;
  throw error(errc::invalid_argument,
              fmt::format("make tensor {}{}", name(spec.type), to_string(spec.shape)), why);
}

std::string_view name(element_type type) noexcept {
  constexpr std::array<std::string_view, element_types> names{
      "bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"};
  return names[static_cast<std::size_t>(type)];
}

dimensions dimensions::prepend(std::int64_t extent) const {
  if (rank_ == max_rank) refuse_rank(max_rank + 1);
  dimensions result;
  result.extents_[result.rank_++] = extent;
  for (auto rest : *this) result.extents_[result.rank_++] = rest;
  return result;
}

dimensions dimensions::tail() const {
  assert(rank_ > 0);
  return dimensions(std::span(extents_).subspan(1, rank_ - 1u));
}

void dimensions::refuse_rank(std::size_t rank) {
  throw error(errc::invalid_argument, fmt::format("make {} dimensions", rank),
              "at most 8 are supported");
}

std::string to_string(const dimensions& extents) {
  std::string text = "[";
  for (auto extent : extents) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

std::size_t tensor_spec::elements() const {
  std::size_t count = 1;
  for (auto extent : shape) {
    require(extent >= 0, *this, "negative extent");
    require(!__builtin_mul_overflow(count, static_cast<std::size_t>(extent), &count), *this,
            "too many elements");
  }
  std::size_t bytes = 0;
  require(!__builtin_mul_overflow(count, element_bytes(type), &bytes), *this, "too many bytes");
  return count;
}

// Wraps around on overflow. Only a shape without elements can overflow, and its strides are not
// used.
static std::int64_t next_stride(std::int64_t stride, std::int64_t extent) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                   static_cast<std::uint64_t>(extent));
}

dimensions contiguous_strides(const dimensions& shape) {
  std::array<std::int64_t, dimensions::max_rank> strides{};
  std::int64_t step = 1;
  for (auto i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = next_stride(step, shape[i]);
  }
  return dimensions(std::span<const std::int64_t>(strides).first(shape.size()));
}

tensor::tensor(const tensor_spec& spec, buffer memory)
    : spec_(spec),
      strides_(contiguous_strides(spec.shape)),
      memory_(std::move(memory)),
      first_(memory_.data()) {
  require(spec.bytes() <= memory_.size(), spec, "the buffer is too small");
  require(reinterpret_cast<std::uintptr_t>(first_) % element_bytes(spec.type) == 0, spec,
          "the buffer is not aligned");
}

tensor::tensor(const tensor_spec& spec, const dimensions& strides, buffer memory, std::byte* first)
    : spec_(spec), strides_(strides), memory_(std::move(memory)), first_(first) {
  require(strides.size() == spec.shape.size(), spec, "strides of another rank");
  require(reinterpret_cast<std::uintptr_t>(first) % element_bytes(spec.type) == 0, spec,
          "the first element is not aligned");
  if (spec.elements() == 0) return;
  std::ptrdiff_t lowest = 0;
  std::ptrdiff_t highest = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    std::ptrdiff_t reach = 0;
    auto& end = strides[i] < 0 ? lowest : highest;
    require(!__builtin_mul_overflow(strides[i], spec.shape[i] - 1, &reach) &&
                !__builtin_add_overflow(end, reach, &end),
            spec, "strides out of range");
  }
  auto size = static_cast<std::ptrdiff_t>(element_bytes(spec.type));
  auto before = (first - memory_.data()) / size;
  auto behind = (memory_.data() + memory_.size() - first) / size;
  require(before + lowest >= 0 && highest < behind, spec, "elements outside of the buffer");
}

// `wanted`: __PRETTY_FUNCTION__, which ends in "[T = float]" or "[with T = float]".
void tensor::refuse_elements(std::string_view wanted) const {
  auto type = wanted.substr(wanted.find("T = ") + 4);
  type = type.substr(0, type.find_first_of("];"));
  throw error(errc::invalid_argument,
              fmt::format("take the elements of tensor {}{}", name(spec_.type), to_string(shape())),
              "they are not of type " + std::string(type));
}

bool tensor::contiguous() const noexcept {
  std::int64_t step = 1;
  for (auto i = rank(); i-- > 0;) {
    if (shape()[i] != 1 && strides_[i] != step) return false;
    step = next_stride(step, shape()[i]);
  }
  return true;
}

tensor tensor::operator[](std::int64_t i) const {
  tensor part = slice(i, i + 1);
  part.spec_.shape = part.spec_.shape.tail();
  part.strides_ = part.strides_.tail();
  return part;
}

tensor tensor::slice(std::int64_t begin, std::int64_t end) const {
  if (rank() == 0 || begin < 0 || begin > end || end > shape()[0])
    throw std::out_of_range(
        fmt::format("parts {} to {} of a tensor {}", begin, end, to_string(shape())));
  tensor part = *this;
  part.spec_.shape = shape().tail().prepend(end - begin);
  part.first_ += begin * strides_[0] * static_cast<std::int64_t>(element_bytes(type()));
  return part;
}

void copy_elements(const tensor& from, std::byte* to) {
  auto bytes = from.spec().bytes();
  if (bytes == 0) return;
  if (from.contiguous()) {
    std::memcpy(to, from.bytes(), bytes);
    return;
  }
  auto parts = from.shape()[0];
  auto part_bytes = bytes / static_cast<std::size_t>(parts);
  for (std::int64_t i = 0; i < parts; ++i, to += part_bytes) copy_elements(from[i], to);
}

}  // namespace lade
