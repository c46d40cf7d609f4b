// Arrays in NumPy's format .npy, versions 1 to 3, as tensors.
//
// Source of the format: numpy.lib.format, https://numpy.org/doc/stable/reference/generated/
// numpy.lib.format.html.
//
// - Element types: bool, the integers of 8 to 64 bits, float16, float32 and float64, in either
//   byte order. Other types (complex numbers, strings, dates, records, Python objects) are
//   refused as unsupported; the error names the type. Save complex numbers as `array.view("<f4")`
//   (of complex128 "<f8"). Its last dimension is twice as long, with real and imaginary parts in
//   turn.
// - An array in Fortran order becomes a tensor with strides.
// - At most eight dimensions, the maximum of a tensor.
// - A file holds exactly one array. Bytes after it are refused, as are bytes of a bool other than
//   0 and 1.

#pragma once

#include <lade/buffer.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace lade::io {

// Returns the array in the content of a .npy file. The tensor is a view of `file` if its elements
// have this machine's byte order and are aligned. They are aligned if `file` is a whole file that
// has been read. Otherwise the tensor is a copy in memory of the calling stage. Any thread may call
// it.
//
// `name`: the name of the file in errors. Throws error(invalid_data) or error(unsupported). Never
// allocates more than the size of `file`.
tensor parse_npy(const buffer& file, std::string_view name);

// Reads a .npy file. Requires a runtime.
task<tensor> read_npy(std::string path);

// A function for map that parses the data of samples: the tensor becomes a field, and the data are
// removed.
//
//   lade::from(paths) | lade::map(lade::io::read) | lade::map(lade::io::decode_npy("embedding"))
class decode_npy {
 public:
  explicit decode_npy(std::string field = "array") : field_(std::move(field)) {}

  // Throws as parse_npy does, naming the sample's key.
  sample operator()(sample from) const;

 private:
  std::string field_;
};

}  // namespace lade::io
