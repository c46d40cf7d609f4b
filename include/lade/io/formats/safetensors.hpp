// Files of Hugging Face's format safetensors: named tensors, read all together or one by one.
//
// Source of the format: https://github.com/huggingface/safetensors, "Format".
//
// - Element types: BOOL, the integers of 8 to 64 bits, F16, BF16, F32 and F64. Other types (F8,
//   F4, complex numbers) are refused as unsupported; the error names the type.
// - At most eight dimensions, and a header of at most 100 MB, as in the reference implementation.
// - Each tensor must have the length of its shape. The tensors must cover the data without
//   overlaps and gaps.
// - A BOOL must be 0 or 1.

#pragma once

#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/field.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::io {

// The name, type, shape and position of a tensor in a file.
class safetensors_entry {
 public:
  safetensors_entry(std::string name, const tensor_spec& spec, std::uint64_t offset)
      : name_(std::move(name)), spec_(spec), offset_(offset) {}

  const std::string& name() const noexcept { return name_; }
  const tensor_spec& spec() const noexcept { return spec_; }
  std::uint64_t offset() const noexcept { return offset_; }  // of the elements, in the file

 private:
  std::string name_;
  tensor_spec spec_;
  std::uint64_t offset_;
};

// An open file. A small value: copies share the header and the reader and keep both alive. Any
// thread may use it. Any number of reads may be in flight.
class safetensors_file {
 public:
  // The name of the file in errors.
  const std::string& name() const noexcept;

  // All tensors, in the order of their elements in the file.
  std::span<const safetensors_entry> tensors() const noexcept;

  // Returns the tensor of that name, or null. A linear search.
  const safetensors_entry* find(std::string_view name) const noexcept;

  // The entries of "__metadata__", names and texts, in the order of the file.
  std::span<const std::pair<std::string, std::string>> metadata() const noexcept;

  // Reads the elements of one tensor. The tensor is a view of the file if the file is in memory and
  // the elements are aligned; otherwise its memory is from the caller's pool. Requires a runtime if
  // the reader requires one.
  task<tensor> read(safetensors_entry entry) const;

  // The same by name. Throws error(invalid_argument) if there is no such tensor.
  task<tensor> read(std::string name) const;

 private:
  struct state;
  friend task<safetensors_file> open_safetensors(std::shared_ptr<const byte_reader> from);

  explicit safetensors_file(std::shared_ptr<const state> opened) noexcept
      : state_(std::move(opened)) {}

  static task<tensor> read_entry(std::shared_ptr<const state> file, safetensors_entry entry);

  std::shared_ptr<const state> state_;
};

// The functions below throw error(invalid_data) or error(unsupported) naming the file, and the
// tensor or the byte of the header.

// Opens a file by reading its header. Memory: a few times the size of the header.
task<safetensors_file> open_safetensors(std::shared_ptr<const byte_reader> from);

// The same for a path or URL. Requires a runtime.
task<safetensors_file> open_safetensors(std::string path);

// Returns all tensors of a file in memory. Aligned tensors are views of `file`; files of the
// reference implementation are aligned. Other tensors are copies in memory of the calling stage.
// `name`: the name of the file in errors. Any thread may call it.
std::vector<field> parse_safetensors(const buffer& file, std::string_view name);

// Reads all tensors of a file with one read of the whole file. Requires a runtime.
task<std::vector<field>> read_safetensors(std::string path);

// A function for map that parses the data of samples: the tensors are added to the fields of the
// sample, and the data are removed.
//
//   lade::from(paths) | lade::map(lade::io::read) | lade::map(lade::io::decode_safetensors())
class decode_safetensors {
 public:
  // Throws as parse_safetensors does, naming the sample's key.
  sample operator()(sample from) const;
};

}  // namespace lade::io
