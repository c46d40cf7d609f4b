// Looks up host names on dedicated threads, one per lookup. A name server that never answers delays
// only the requests for its name.

#pragma once

#include <lade/event.hpp>
#include <lade/task.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

struct addrinfo;

namespace lade::io::http {

// Calls getaddrinfo. Tests replace it.
int look_up_host(const char* host, addrinfo** found);

// Lifetimes of answers. Up to `fresh`, an answer is used. Up to `kept`, it is used while a thread
// looks the host up again. An older one is not used.
struct answer_lifetimes {
  std::chrono::seconds fresh{60};
  std::chrono::seconds kept{3600};
};

// Any thread. Must never be destroyed: its threads may outlive the callers and the runtime, since
// getaddrinfo cannot be interrupted.
class resolver {
 public:
  explicit resolver(answer_lifetimes lifetimes) noexcept : lifetimes_(lifetimes) {}

  static resolver& of_process();

  // The addresses of a host as libcurl's option RESOLVE takes them: "192.0.2.1,[2001:db8::1]".
  // If the lookup fails, a kept answer remains valid. Throws error naming the host, and
  // error(stopped) if the caller is cancelled.
  task<std::string> resolve(std::string host);

 private:
  using clock = std::chrono::steady_clock;
  struct answer {
    event resolved;
    std::string addresses;
    int failure = 0;  // of getaddrinfo
    clock::time_point fresh_until = clock::time_point::max();
    clock::time_point kept_until;
    bool is_refreshing = false;
  };

  static constexpr std::size_t most_threads = 256;

  std::shared_ptr<answer> query(const std::string& host);
  void look_up_on_thread(const std::string& host, const std::shared_ptr<answer>& into);
  void look_up(const std::string& host, const std::shared_ptr<answer>& into) noexcept;
  void keep(const std::string& host, const std::shared_ptr<answer>& made) noexcept;
  void forget_old_answers();

  const answer_lifetimes lifetimes_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<answer>> answers_;  // guarded by mutex_, as threads_
  std::size_t threads_ = 0;
};

}  // namespace lade::io::http
