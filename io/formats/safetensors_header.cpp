#include "safetensors_header.hpp"

#include <lade/error.hpp>
#include <lade/support/json_reader.hpp>
#include <lade/support/little_endian.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace lade::io {

using support::json_reader;

[[noreturn]] static void refuse_safetensors(std::string_view name, const std::string& reason,
                                            errc code = errc::invalid_data) {
  throw error(code, "read " + std::string(name), reason);
}

std::size_t safetensors_header_bytes(std::span<const std::byte> begin, std::uint64_t size,
                                     std::string_view name) {
  constexpr std::uint64_t most = 100'000'000;
  if (begin.size() < safetensors_length_bytes)
    refuse_safetensors(name, fmt::format("it has only {} bytes", begin.size()));
  auto bytes = support::load_little<std::uint64_t>(begin.data());
  auto there = size - safetensors_length_bytes;
  if (bytes > there)
    refuse_safetensors(name,
                       fmt::format("its header claims {} bytes, and {} follow", bytes, there));
  if (bytes > most)
    refuse_safetensors(name, fmt::format("its header has {} bytes, more than 100 MB", bytes),
                       errc::limit_exceeded);
  return static_cast<std::size_t>(bytes);
}

// A tensor as described by the header.
struct safetensors_member {
  std::string type;
  std::vector<std::int64_t> shape;
  std::vector<std::uint64_t> range;
};

static safetensors_member read_safetensors_member(json_reader& json) {
  safetensors_member member;
  json.object([&](const std::string& key) {
    if (key == "dtype")
      member.type = json.string();
    else if (key == "shape")
      json.array([&] { member.shape.push_back(json.integer()); });
    else if (key == "data_offsets")
      json.array([&] { member.range.push_back(json.unsigned_integer()); });
    else
      json.skip();
  });
  return member;
}

static std::optional<element_type> type_of_safetensors(std::string_view text) noexcept {
  constexpr std::array<std::string_view, element_types> names{
      "BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F16", "BF16", "F32", "F64"};
  auto found = std::ranges::find(names, text);
  if (found == names.end()) return std::nullopt;
  return static_cast<element_type>(found - names.begin());
}

// The size of the elements; empty on overflow.
static std::optional<std::uint64_t> bytes_of_spec(const tensor_spec& spec) noexcept {
  std::uint64_t bytes = element_bytes(spec.type);
  for (auto extent : spec.shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      return std::nullopt;
  return bytes;
}

// The entry of a member in a file whose data start at `data_offset`.
static safetensors_entry safetensors_entry_of(const std::string& tensor,
                                              const safetensors_member& member,
                                              std::uint64_t data_offset, std::string_view name) {
  auto full_name = fmt::format("{}/{}", name, tensor);
  auto type = type_of_safetensors(member.type);
  if (!type)
    refuse_safetensors(full_name,
                       fmt::format("elements of type '{}' are not supported", member.type),
                       errc::unsupported);
  if (member.shape.size() > dimensions::max_rank)
    refuse_safetensors(full_name, "it has more than 8 dimensions", errc::unsupported);
  tensor_spec spec{*type, dimensions(std::span<const std::int64_t>(member.shape))};
  if (member.range.size() != 2 || member.range[0] > member.range[1])
    refuse_safetensors(full_name, "its data_offsets are no range");
  if (bytes_of_spec(spec) != member.range[1] - member.range[0])
    refuse_safetensors(full_name,
                       fmt::format("its shape {} is not one of {} bytes", to_string(spec.shape),
                                   member.range[1] - member.range[0]));
  auto offset = data_offset;
  if (__builtin_add_overflow(offset, member.range[1], &offset))
    refuse_safetensors(full_name, "its data_offsets are beyond all files");
  return safetensors_entry(tensor, spec, data_offset + member.range[0]);
}

// Sorts tensors by their offsets. Throws unless they are contiguous and extend to the end of the
// file.
static void require_safetensors_cover(std::vector<safetensors_entry>& tensors,
                                      std::uint64_t data_offset, std::uint64_t size,
                                      std::string_view name) {
  auto end_of = [](const safetensors_entry& entry) {
    return entry.offset() + entry.spec().bytes();
  };
  auto range_of = [&](const safetensors_entry& entry) {
    return std::pair(entry.offset(), end_of(entry));
  };
  std::ranges::sort(tensors, {}, range_of);
  auto end = data_offset;
  for (auto& each : tensors) {
    if (each.offset() != end)
      refuse_safetensors(fmt::format("{}/{}", name, each.name()),
                         fmt::format("it begins at byte {}, and what is before it ends at {}",
                                     each.offset(), end));
    end = end_of(each);
  }
  if (end != size)
    refuse_safetensors(name,
                       fmt::format("its tensors end at byte {}, and it has {} bytes", end, size));
}

safetensors_header parse_safetensors_header(std::string_view text, std::uint64_t size,
                                            std::string_view name) {
  auto data_offset = safetensors_length_bytes + text.size();
  auto header_name = "the header of " + std::string(name);
  if (!text.starts_with('{')) refuse_safetensors(name, "its header does not begin with '{'");
  json_reader json(text, header_name);
  safetensors_header header;
  json.object([&](const std::string& key) {
    if (key == "__metadata__")
      json.object(
          [&](const std::string& label) { header.metadata.emplace_back(label, json.string()); });
    else
      header.tensors.push_back(
          safetensors_entry_of(key, read_safetensors_member(json), data_offset, name));
  });
  json.end();
  require_safetensors_cover(header.tensors, data_offset, size, name);
  return header;
}

}  // namespace lade::io
