// Reads that the kernel answers from the page cache, made by the thread that wants the bytes.
//
// A thread of the pool that asks a reactor, and is woken up by it, waits as long as copying 100 KB
// takes. So it takes what is there first, by a call that never waits for a disk or a network; for
// the rest there is the reactor. A reactor's own thread does not: it begins calls in batches, and
// is not to copy much. (Opens are the reactor's: there is no call that opens a file only if that
// does not block.)

#pragma once

#include <lade/context.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lade::detail {

// Copies the beginning of a range of a file, up to where the page cache lacks some (preadv2(2) with
// RWF_NOWAIT). Returns how many bytes; 0 if there are none, or the file system cannot tell. `path`:
// what a trace calls it.
std::size_t read_cached(const context& here, int fd, std::span<std::byte> into,
                        std::uint64_t offset, const std::string& path) noexcept;

}  // namespace lade::detail
