// Files of Hugging Face's format safetensors: named tensors, read all together or one by one.
//
// Source of the format: https://github.com/huggingface/safetensors, "Format".
//
// - Element types: BOOL, the integers of 8 to 64 bits, F16, BF16, F32 and F64. All others (F8, F4,
//   complex numbers) are refused as unsupported, with the type in the text.
// - At most eight dimensions, and a header of at most 100 MB, as in the reference implementation.
// - The tensors must be as long as their shapes and cover the data without overlaps and holes.
// - A BOOL is 0 or 1.

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

// Where a tensor of a file is.
class safetensors_entry {
 public:
  safetensors_entry(std::string name, const tensor_spec& spec, std::uint64_t offset)
      : name_(std::move(name)), spec_(spec), offset_(offset) {}

  const std::string& name() const noexcept { return name_; }
  const tensor_spec& spec() const noexcept { return spec_; }
  std::uint64_t offset() const noexcept { return offset_; }  // of its elements in the file

 private:
  std::string name_;
  tensor_spec spec_;
  std::uint64_t offset_;
};

// An open file. A small value: copies share the header and the reader, and keep both alive. Any
// thread may use it, and any number of tensors may be read at a time.
class safetensors_file {
 public:
  // What errors call it.
  const std::string& name() const noexcept;

  // All tensors in the order of their elements in the file.
  std::span<const safetensors_entry> tensors() const noexcept;

  // The tensor of that name, or null. Looks at all names.
  const safetensors_entry* find(std::string_view name) const noexcept;

  // The texts of "__metadata__" by name, in the order of the file.
  std::span<const std::pair<std::string, std::string>> metadata() const noexcept;

  // A tensor, of which only the elements are read: a view of the file if that is in memory and they
  // are aligned there, else memory of the caller's pool. Needs a runtime if the reader needs one.
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

// These throw error(invalid_data) or error(unsupported) naming the file, and the tensor or the byte
// of the header.

// Reads the header of a file. Memory: that of the header, a few times.
task<safetensors_file> open_safetensors(std::shared_ptr<const byte_reader> from);

// The same of a file. Requires a runtime.
task<safetensors_file> open_safetensors(std::string path);

// All tensors of a file in memory, as views of it where they are aligned, which they are in files
// that the reference implementation has written; else in memory of the stage that calls. Any thread
// may call it.
std::vector<field> parse_safetensors(const buffer& file, std::string_view name);

// Reads a whole file at once. Requires a runtime.
task<std::vector<field>> read_safetensors(std::string path);

// A stage's function that parses the data of samples: the tensors become fields beside those that a
// sample has, and the data are dropped.
//
//   lade::from(paths) | lade::map(lade::io::read) | lade::map(lade::io::decode_safetensors())
class decode_safetensors {
 public:
  // Throws what parse_safetensors throws, naming the sample's key.
  sample operator()(sample from) const;
};

}  // namespace lade::io
