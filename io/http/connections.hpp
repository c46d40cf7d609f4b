// The sockets of an engine's connections.

#pragma once

#include <chrono>
#include <vector>

#include <curl/curl.h>

namespace lade::io::http {

// libcurl opens and closes sockets here. On the engine's thread.
class connection_list {
 public:
  // A socket, or CURL_SOCKET_BAD.
  int open(const curl_sockaddr& to) noexcept;

  void remove(int fd) noexcept;

  // Ends the connection of a transfer over which nothing has come for so long. libcurl closes that
  // of HTTP/1.1 itself, but keeps one of HTTP/2, and each request that follows would be sent over a
  // connection that is dead: only who reads from it finds its end. Requests that share it fail, and
  // may be tried again.
  void end_if_silent(CURL* transfer, std::chrono::milliseconds silence) const noexcept;

 private:
  std::vector<int> open_;
};

}  // namespace lade::io::http
