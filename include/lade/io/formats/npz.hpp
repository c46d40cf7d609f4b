// NPZ files: several arrays in one file, as numpy.savez and numpy.savez_compressed write them. A
// ZIP archive of .npy files; see npy.hpp for the arrays and zip.hpp for the archive.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/field.hpp>
#include <lade/io/formats/zip.hpp>
#include <lade/sample.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace lade::io {

// Returns all arrays of a file as tensors, in the order of the archive. The name of an array is
// that of its member without ".npy". Other members become fields of bytes; directories are skipped.
//
// zip_options::max_bytes limits the sum of all compressed members. Throws error naming the file and
// the member: the errors of open_zip, zip_archive::read and parse_npy, and error(invalid_data) for
// two arrays of one name. To read only some arrays, read members of a zip_archive by name.
task<std::vector<field>> read_npz(std::shared_ptr<const byte_reader> from,
                                  zip_options options = {});

// The same for a path or URL. Requires a runtime.
task<std::vector<field>> read_npz(std::string path, zip_options options = {});

// A function for map that parses the data of samples: the arrays are added to the fields of the
// sample, and the data are removed.
//
//   lade::from(paths) | lade::map(lade::io::read) | lade::map(lade::io::decode_npz())
class decode_npz {
 public:
  explicit decode_npz(zip_options options = {}) noexcept : options_(options) {}

  // Throws as read_npz does, naming the sample's key.
  sample operator()(sample from) const;

  // Returns the bytes of memory that the arrays of a sample need at most, for the budget of a
  // stage.
  std::size_t memory_needed(const sample& from) const;

 private:
  zip_options options_;
};

}  // namespace lade::io
