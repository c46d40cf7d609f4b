// Waiting for a word in memory to change: futex(2).

#pragma once

#include <atomic>
#include <cstdint>

namespace lade::detail {

// A word that threads wait on. It may be woken after it has been destroyed: at worst, that wakes
// threads that wait on a new word at the same address, and they check their condition again.
using futex_word = std::atomic<std::uint32_t>;

// Blocks while the word is `seen`. May return early.
void futex_wait(const futex_word& word, std::uint32_t seen) noexcept;
void futex_wake_one(const futex_word* word) noexcept;
void futex_wake_all(const futex_word* word) noexcept;

}  // namespace lade::detail
