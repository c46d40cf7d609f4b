// An index of a tar archive: the positions of its members, for reading single members.

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
  // `identity`: identifies the version of the archive, such as its time of modification or an ETag.
  // Throws error(invalid_data) for an entry that exceeds the archive.
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

// Reads the headers of an archive and skips the contents: one read of 4 KiB for each header, or
// fewer where members are small. Members and errors are those of tar_members. Throws
// error(unsupported) for a compressed archive, which can only be read as a stream.
task<tar_index> index_tar(std::shared_ptr<const byte_reader> archive, std::string identity = {},
                          tar_options options = {});

// Convert an index to bytes and back. The bytes are the same on all machines, and have a version
// and a checksum. `tar_index_from_bytes` throws error(invalid_data) with the reason if the bytes
// are not an index.
std::string to_bytes(const tar_index& index);
tar_index tar_index_from_bytes(std::string_view bytes);

// Returns the path of the index of an archive. Without a directory: "a.tar.lade-index", beside the
// archive. With a directory: a name in it that is derived from the whole name of the archive; for a
// URL, without the signature in its query. Returns an empty path for a URL with a query and no
// directory: such an archive has no saved index.
std::string index_path(const std::string& archive, const std::string& directory = {});

// Writes an index to a file, which appears atomically. Creates no directories. Blocks.
void save(const tar_index& index, const std::string& path);

// Returns the index at `path` if it matches the size and the identity of the archive. Otherwise
// indexes the archive and saves the index. A damaged index, or one of another archive, is replaced.
// The result is the same if the index cannot be saved, as on a read-only file system.
//
// Not saved: an index at a URL, and an index of an archive with reported damage, so that the next
// call reports the damage again.
task<tar_index> load_or_index_tar(std::shared_ptr<const byte_reader> archive, std::string identity,
                                  std::string path, tar_options options = {});

}  // namespace lade::io
