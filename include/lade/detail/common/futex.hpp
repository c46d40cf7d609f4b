// Sleeping until a word in memory changes: futex(2).

#pragma once

#include <atomic>
#include <cstdint>

namespace lade::detail {

// A word that threads wait on. Whoever wakes them may do so when the word is gone: at worst the
// threads are woken for nothing that wait on what has its place now, and look again.
using futex_word = std::atomic<std::uint32_t>;

// Sleeps as long as the word is `seen`; perhaps not as long.
void futex_wait(const futex_word& word, std::uint32_t seen) noexcept;
void futex_wake_one(const futex_word* word) noexcept;
void futex_wake_all(const futex_word* word) noexcept;

}  // namespace lade::detail
