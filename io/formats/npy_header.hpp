// Parses .npy files (NumPy format specification, numpy.lib.format).

#pragma once

#include <lade/buffer.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lade::io {

// The header of a .npy file.
struct npy_header {
  tensor_spec spec;
  bool fortran_order = false;
  bool swapped = false;         // the byte order is not that of this machine
  std::size_t data_offset = 0;  // of the first element in the file

  // Whether elements at this address need no copy.
  bool is_usable(const std::byte* elements) const noexcept {
    return !swapped && reinterpret_cast<std::uintptr_t>(elements) % element_bytes(spec.type) == 0;
  }
};

// Parses the header of a whole file. Throws error(invalid_data) or error(unsupported), also if the
// file is longer or shorter than the array.
npy_header parse_npy_header(std::span<const std::byte> file, std::string_view name);

// Returns the array of a file with this header: a view of the file if possible, else a copy in
// `copy`, which must be large enough. Throws error(invalid_data) for bools other than 0 and 1.
tensor make_npy_tensor(const npy_header& header, const buffer& file, buffer copy,
                       std::string_view name);

// Parses a .npy file, as parse_npy does, with memory of the caller's pool.
task<tensor> load_npy(buffer file, std::string name);

// A tensor of stored elements: contiguous, or with the strides of Fortran order. The memory must
// have the bytes of the spec, aligned.
tensor make_stored_tensor(const tensor_spec& spec, bool fortran_order, buffer memory);

// Throws error(invalid_data) if a byte is neither 0 nor 1.
void require_booleans(std::span<const std::byte> elements, std::string_view name);

}  // namespace lade::io
