// The streams whose work uses a piece of memory.

#pragma once

#include <lade/cuda/event.hpp>
#include <lade/cuda/stream.hpp>

#include <optional>
#include <vector>

namespace lade::cuda {

// Each stream once, except stream::per_thread_default, which is another one in each thread.
class stream_users {
 public:
  // `last`: the point behind which the stream does not use the memory, if that is known.
  struct user {
    stream on;
    std::optional<event> last;
  };

  static bool is_same(const stream& a, const stream& b) noexcept;
  static bool is_of_thread(const stream& user) noexcept;

  void set(const stream& on, std::optional<event> last);

  // The stream's work uses the memory, also work that is queued later. Of per_thread_default, only
  // what this thread has queued by now. Throws error.
  void use_on(const stream& on);

  // Work that is queued on `next` from now on is behind that of all users by now. Throws error.
  void let_wait(const stream& next) const;

  // What the streams queue from now on does not use the memory.
  void record_all() noexcept;

  void clear() noexcept { users_.clear(); }
  const std::vector<user>& all() const noexcept { return users_; }

 private:
  std::vector<user> users_;
};

}  // namespace lade::cuda
