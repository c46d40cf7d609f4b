// Names of hosts to addresses, looked up by threads of their own: a server that never answers holds
// up those who wait for that name, and nobody else.

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

// getaddrinfo, but for tests that put their own in its place.
int look_up_host(const char* host, addrinfo** found);

// How old an answer of a name server may be.
struct answer_lifetimes {
  std::chrono::seconds fresh{60};   // then the host is looked up again,
  std::chrono::seconds kept{3600};  // for which nobody waits whose answer is not older than that
};

// Its threads outlive whoever has asked, and the runtime, since nothing can interrupt getaddrinfo;
// so it must never be destroyed.
class resolver {
 public:
  explicit resolver(answer_lifetimes lifetimes) noexcept : lifetimes_(lifetimes) {}

  static resolver& of_process();

  // The addresses of a host as libcurl's option RESOLVE takes them: "192.0.2.1,[2001:db8::1]".
  // A name server that fails takes no answer away that is kept. Throws error that names the host,
  // and error(stopped) when the caller is asked to stop.
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
  std::map<std::string, std::shared_ptr<answer>> answers_;  // guarded by mutex_, as what follows
  std::size_t threads_ = 0;
};

}  // namespace lade::io::http
