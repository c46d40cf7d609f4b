// An index of a tar archive: where its members are, so that each is read by itself.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/task.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::io {

// A regular file in an archive, without its content.
class tar_entry {
 public:
  tar_entry(std::string name, std::uint64_t offset, std::uint64_t bytes)
      : name_(std::move(name)), offset_(offset), bytes_(bytes) {}

  const std::string& name() const noexcept { return name_; }
  std::uint64_t offset() const noexcept { return offset_; }  // of the content, in the archive
  std::uint64_t bytes() const noexcept { return bytes_; }

  friend bool operator==(const tar_entry&, const tar_entry&) = default;

 private:
  std::string name_;
  std::uint64_t offset_;
  std::uint64_t bytes_;
};

class tar_index {
 public:
  // `identity`: which version of the archive it is of: its time of modification, an ETag.
  // Throws error(invalid_data) for an entry that is not inside of the archive.
  tar_index(std::uint64_t archive_bytes, std::string identity, std::vector<tar_entry> entries);

  std::uint64_t archive_bytes() const noexcept { return archive_bytes_; }
  const std::string& identity() const noexcept { return identity_; }
  const std::vector<tar_entry>& entries() const noexcept { return entries_; }  // in their order

  friend bool operator==(const tar_index&, const tar_index&) = default;

 private:
  std::uint64_t archive_bytes_;
  std::string identity_;
  std::vector<tar_entry> entries_;
};

// Reads the headers of an archive and passes over its contents: a read of 4 KiB for each header, or
// fewer where members are small. Members and errors are those of tar_members. Throws
// error(unsupported) for a compressed archive, which can only be read as a stream.
task<tar_index> index_tar(std::shared_ptr<const byte_reader> archive, std::string identity = {},
                          tar_options options = {});

// An index as bytes that are the same on all machines, with a version and a checksum, and back.
// `tar_index_from_bytes` throws error(invalid_data) that says why bytes are no index.
std::string to_bytes(const tar_index& index);
tar_index tar_index_from_bytes(std::string_view bytes);

// Where the index of an archive is kept: "a.tar.lade-index" beside it or, with a directory, in
// that, under a name that is made of the archive's whole name, of a URL without the signature in
// its query. Without a directory, an archive with a query has no index: empty.
std::string index_path(const std::string& archive, const std::string& directory = {});

// Writes an index to a file, which others see when it is complete. Creates no directories. Blocks.
void save(const tar_index& index, const std::string& path);

// The index that is kept at `path` if it is of the archive's size and identity; otherwise the
// archive is indexed and the index is saved. An index that is damaged or of another archive is
// replaced. One that cannot be saved is used all the same: where the archive is read-only. One of
// an archive whose damage was reported is not saved, so that the next one reports it again. Behind
// a URL, an index is read and none is saved.
task<tar_index> load_or_index_tar(std::shared_ptr<const byte_reader> archive, std::string identity,
                                  std::string path, tar_options options = {});

}  // namespace lade::io
