// Several arrays in one file, as numpy.savez and numpy.savez_compressed write them: a ZIP archive
// of .npy files. See npy.hpp for the arrays and zip.hpp for the archive.

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

// All arrays of a file as tensors, in the order of the archive; each is called like its member,
// without ".npy". Members of other names become fields of bytes; directories are left out.
//
// zip_options::max_bytes bounds the sum of all compressed members. Throws error naming the file and
// the member: what open_zip, zip_archive::read and parse_npy throw, and error(invalid_data) for two
// arrays of one name. To read some arrays of many, read members of a zip_archive by name.
task<std::vector<field>> read_npz(std::shared_ptr<const byte_reader> from,
                                  zip_options options = {});

// The same of a file. Requires a runtime.
task<std::vector<field>> read_npz(std::string path, zip_options options = {});

// A stage's function that parses the data of samples: the arrays become fields beside those that a
// sample has, and the data are dropped.
//
//   lade::from(paths) | lade::map(lade::io::read) | lade::map(lade::io::decode_npz())
class decode_npz {
 public:
  explicit decode_npz(zip_options options = {}) noexcept : options_(options) {}

  // Throws what read_npz throws, naming the sample's key.
  sample operator()(sample from) const;

  // How much memory its arrays take, for stages.
  std::size_t memory_needed(const sample& from) const;

 private:
  zip_options options_;
};

}  // namespace lade::io
