// System calls that the kernel answers from its caches, made by the thread that wants the answer.
//
// A thread of the pool that asks a reactor, and is woken up by it, waits as long as copying 100 KB
// takes. So it asks for what is there first, with calls that never wait for a disk or a network;
// for all else there is the reactor. A reactor's own thread makes none of them: it begins calls in
// batches, and is not to copy much.

#pragma once

#include <lade/context.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lade::detail {

// Opens a file for reading that the kernel knows the path of (openat2(2) with RESOLVE_CACHED, Linux
// 5.12). -1 if it does not, and wherever it cannot be opened at once.
int open_cached(const context& here, int directory, const std::string& path) noexcept;

// Copies the beginning of a range of a file, up to where the page cache lacks some (preadv2(2) with
// RWF_NOWAIT). Returns how many bytes; 0 if there are none, or the file system cannot tell. `path`:
// what a trace calls it.
std::size_t read_cached(const context& here, int fd, std::span<std::byte> into,
                        std::uint64_t offset, const std::string& path) noexcept;

}  // namespace lade::detail
