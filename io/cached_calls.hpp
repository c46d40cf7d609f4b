// System calls that the kernel completes from its caches, on the calling thread.
//
// The round trip of a pool thread to a reactor takes as long as copying 100 KB. So the thread first
// makes calls that never wait for a disk, a network or another process; the reactor does the rest.
// A reactor's thread makes no such calls: it starts operations in batches, and should not copy
// much.

#pragma once

#include <lade/context.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lade::detail {

// Opens a regular file for reading if its path is cached and its file system is on a block device.
// There, the kernel opens it without waiting; FUSE would ask another process, and NFS another
// machine. (FUSE on a block device, fuseblk, cannot be distinguished from a disk; it may block.)
// Returns -1 for other files, and if the open would block.
int open_cached(const context& current, int directory, const std::string& path) noexcept;

// Copies the beginning of a range of a file, up to the first byte that is not in the page cache
// (preadv2(2) with RWF_NOWAIT). Returns the number of bytes; 0 also if the file system does not
// support this. `path`: the name in traces.
std::size_t read_cached(const context& current, int fd, std::span<std::byte> into,
                        std::uint64_t offset, const std::string& path) noexcept;

}  // namespace lade::detail
