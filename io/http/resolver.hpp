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

// The resolver of the process. Its threads outlive whoever has asked, and the runtime, since
// nothing can interrupt getaddrinfo; so it is never destroyed.
class resolver {
 public:
  static resolver& of_process();

  // The addresses of a host as libcurl's option RESOLVE takes them: "192.0.2.1,[2001:db8::1]".
  // Answers are kept for a minute. Throws error that names the host, and error(stopped) when the
  // caller is asked to stop.
  task<std::string> resolve(std::string host);

 private:
  using clock = std::chrono::steady_clock;
  struct answer {
    event known;
    std::string addresses;
    int failure = 0;  // of getaddrinfo
    clock::time_point fresh_until = clock::time_point::max();
  };

  static constexpr std::size_t most_threads = 256;

  std::shared_ptr<answer> ask(const std::string& host);
  void forget_old_answers();
  void look_up(const std::string& host, answer& into) noexcept;

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<answer>> answers_;  // guarded by mutex_, as what follows
  std::size_t threads_ = 0;
};

}  // namespace lade::io::http
