// System calls that the kernel answers from its caches, made by the thread that wants the answer.
//
// A thread of the pool that asks a reactor, and is woken up by it, waits as long as copying 100 KB
// takes. So it takes what is there first, by calls that never wait for a disk, a network or another
// process; for the rest there is the reactor. A reactor's own thread makes none of them: it begins
// calls in batches, and is not to copy much.

#pragma once

#include <lade/context.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lade::detail {

// Opens a regular file for reading whose path the kernel has in memory, on a file system of a block
// device: there the kernel opens it by itself, while FUSE asks another process and NFS another
// machine. (FUSE over a block device, fuseblk, cannot be told from a disk: it is waited for.) -1
// for all others, and wherever a file cannot be opened at once.
int open_cached(const context& current, int directory, const std::string& path) noexcept;

// Copies the beginning of a range of a file, up to where the page cache lacks some (preadv2(2) with
// RWF_NOWAIT). Returns how many bytes; 0 if there are none, or the file system cannot tell. `path`:
// what a trace calls it.
std::size_t read_cached(const context& current, int fd, std::span<std::byte> into,
                        std::uint64_t offset, const std::string& path) noexcept;

}  // namespace lade::detail
