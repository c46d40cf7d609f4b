#include "npy_header.hpp"
#include "safetensors_header.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/safetensors.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace lade::io {

struct safetensors_file::state {
  state(std::shared_ptr<const byte_reader> reader, safetensors_header parsed)
      : from(std::move(reader)), header(std::move(parsed)) {}

  std::shared_ptr<const byte_reader> from;
  safetensors_header header;
};

const std::string& safetensors_file::name() const noexcept { return state_->from->name(); }

std::span<const safetensors_entry> safetensors_file::tensors() const noexcept {
  return state_->header.tensors;
}

std::span<const std::pair<std::string, std::string>> safetensors_file::metadata() const noexcept {
  return state_->header.metadata;
}

const safetensors_entry* safetensors_file::find(std::string_view name) const noexcept {
  auto found = std::ranges::find(tensors(), name, &safetensors_entry::name);
  return found == tensors().end() ? nullptr : &*found;
}

task<tensor> safetensors_file::read(safetensors_entry entry) const {
  return read_entry(state_, std::move(entry));
}

task<tensor> safetensors_file::read(std::string name) const {
  auto* found = find(name);
  if (!found)
    throw error(errc::invalid_argument, "read " + this->name() + "/" + name,
                "the file has no such tensor");
  return read(*found);
}

static bool is_aligned_safetensor(const buffer& elements, element_type type) noexcept {
  return reinterpret_cast<std::uintptr_t>(elements.data()) % element_bytes(type) == 0;
}

// Makes a tensor of elements. Copies them to `copy` if they are not aligned.
static tensor make_safetensor(const tensor_spec& spec, buffer elements, buffer copy,
                              const std::string& name) {
  if (spec.type == element_type::boolean) require_booleans(elements.bytes(), name);
  if (is_aligned_safetensor(elements, spec.type)) return tensor(spec, std::move(elements));
  std::memcpy(copy.data(), elements.data(), elements.size());
  return tensor(spec, std::move(copy));
}

task<tensor> safetensors_file::read_entry(std::shared_ptr<const state> file,
                                          safetensors_entry entry) {
  auto& spec = entry.spec();
  auto elements = co_await file->from->read_at(entry.offset(), spec.bytes());
  buffer copy;
  if (!is_aligned_safetensor(elements, spec.type)) copy = co_await allocate(spec.bytes());
  co_return make_safetensor(spec, std::move(elements), std::move(copy),
                            file->from->name() + "/" + entry.name());
}

task<safetensors_file> open_safetensors(std::shared_ptr<const byte_reader> from) {
  constexpr std::uint64_t usual_header = std::uint64_t{64} << 10;
  auto size = from->size();
  auto first = static_cast<std::size_t>(std::min(size, usual_header));
  auto begin = co_await from->read_at(0, first);
  auto bytes = safetensors_header_bytes(begin.bytes(), size, from->name());
  auto data_offset = safetensors_length_bytes + bytes;
  if (data_offset > begin.size()) begin = co_await from->read_at(0, data_offset);
  auto header = parse_safetensors_header(begin.text().substr(safetensors_length_bytes, bytes), size,
                                         from->name());
  co_return safetensors_file(
      std::make_shared<const safetensors_file::state>(std::move(from), std::move(header)));
}

task<safetensors_file> open_safetensors(std::string path) {
  auto from = co_await open_reader(std::move(path));
  co_return co_await open_safetensors(std::move(from));
}

std::vector<field> parse_safetensors(const buffer& file, std::string_view name) {
  auto bytes = safetensors_header_bytes(file.bytes(), file.size(), name);
  auto header = parse_safetensors_header(file.text().substr(safetensors_length_bytes, bytes),
                                         file.size(), name);
  std::vector<field> fields;
  for (auto& each : header.tensors) {
    auto elements = file.slice(each.offset(), each.spec().bytes());
    buffer copy;
    if (!is_aligned_safetensor(elements, each.spec().type)) copy = allocate_now(elements.size());
    fields.emplace_back(each.name(),
                        make_safetensor(each.spec(), std::move(elements), std::move(copy),
                                        std::string(name) + "/" + each.name()));
  }
  return fields;
}

task<std::vector<field>> read_safetensors(std::string path) {
  auto content = co_await read_file(path);
  auto from = std::make_shared<const memory_reader>(std::move(content), without_secrets(path));
  auto file = co_await open_safetensors(std::move(from));
  std::vector<field> fields;
  for (auto& each : file.tensors()) {
    auto elements = co_await file.read(each);
    fields.emplace_back(each.name(), std::move(elements));
  }
  co_return fields;
}

sample decode_safetensors::operator()(sample from) const {
  auto tensors = parse_safetensors(from.data(), from.name());
  std::vector<field> fields(from.fields().begin(), from.fields().end());
  std::ranges::move(tensors, std::back_inserter(fields));
  return std::move(from).without_data().with_fields(std::move(fields));
}

}  // namespace lade::io
