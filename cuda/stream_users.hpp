// Tracks the streams whose work uses a piece of memory.

#pragma once

#include <lade/cuda/event.hpp>
#include <lade/cuda/stream.hpp>

#include <optional>
#include <vector>

namespace lade::cuda {

// Each stream occurs once, except stream::per_thread_default, which is a different stream in each
// thread.
class stream_users {
 public:
  // `last`: the point after which the stream does not use the memory, if known.
  struct user {
    stream on;
    std::optional<event> last;
  };

  static bool is_same(const stream& a, const stream& b) noexcept;
  static bool is_of_thread(const stream& user) noexcept;

  void set(const stream& on, std::optional<event> last);

  // Adds a stream whose work uses the memory, including work that is queued later. For
  // per_thread_default, only work that this thread has queued so far. Throws error.
  void use_on(const stream& on);

  // Makes work that is queued on `next` later wait for the work of all users so far. Throws error.
  void let_wait(const stream& next) const;

  // Declares that work queued later does not use the memory.
  void record_all() noexcept;

  void clear() noexcept { users_.clear(); }
  const std::vector<user>& all() const noexcept { return users_; }

 private:
  std::vector<user> users_;
};

}  // namespace lade::cuda
