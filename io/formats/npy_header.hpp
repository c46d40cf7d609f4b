// The header of a .npy file.

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

// What a .npy file says of its array.
struct npy_header {
  tensor_spec spec;
  bool fortran_order = false;
  bool swapped = false;         // elements in the other byte order than this machine's
  std::size_t data_offset = 0;  // of the first element in the file

  // Whether elements at this address can be used where they are.
  bool is_usable(const std::byte* elements) const noexcept {
    return !swapped && reinterpret_cast<std::uintptr_t>(elements) % element_bytes(spec.type) == 0;
  }
};

// Parses the header of a whole file. Throws error(invalid_data) or error(unsupported), also where
// the file does not end with the array.
npy_header parse_npy_header(std::span<const std::byte> file, std::string_view name);

// The array of a file with this header: a view of the file where that is usable, else a copy into
// `copy`, which has at least its bytes. Throws error(invalid_data) for bools that are neither 0
// nor 1.
tensor make_npy_tensor(const npy_header& header, const buffer& file, buffer copy,
                       std::string_view name);

// The array in the content of a .npy file, as parse_npy does it, in memory of the caller's pool.
task<tensor> load_npy(buffer file, std::string name);

// The elements of an array that are stored as they are, as a tensor: contiguous, or with the
// strides of Fortran's order. The memory must have the bytes of the spec, aligned.
tensor make_stored_tensor(const tensor_spec& spec, bool fortran_order, buffer memory);

// Throws error(invalid_data) if one of the bytes is neither 0 nor 1.
void require_booleans(std::span<const std::byte> elements, std::string_view name);

}  // namespace lade::io
