// The sockets of an engine's connections.

#pragma once

#include <chrono>
#include <vector>

#include <curl/curl.h>

namespace lade::io::http {

// Opens and closes the sockets of libcurl. Engine's thread only.
class connection_list {
 public:
  // Returns a socket, or CURL_SOCKET_BAD.
  int open(const curl_sockaddr& to) noexcept;

  void remove(int fd) noexcept;

  // Shuts down the connection of a transfer if nothing was received over it for `silence`. libcurl
  // closes such a connection of HTTP/1.1 itself, but keeps one of HTTP/2, and would send later
  // requests over it though it may be dead. The requests that share it fail and may be retried.
  void end_if_silent(CURL* transfer, std::chrono::milliseconds silence) const noexcept;

 private:
  std::vector<int> open_;
};

}  // namespace lade::io::http
