#include "connections.hpp"

#include <new>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lade::io::http {

int connection_list::open(const curl_sockaddr& to) noexcept {
  int fd = socket(to.family, to.socktype | SOCK_CLOEXEC, to.protocol);
  if (fd < 0) return CURL_SOCKET_BAD;
  try {
    open_.push_back(fd);
  } catch (const std::bad_alloc&) {
    ::close(fd);
    return CURL_SOCKET_BAD;
  }
  return fd;
}

void connection_list::remove(int fd) noexcept { std::erase(open_, fd); }

static int local_port(int fd) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

// Whether nothing was received for `silence`. The kernel counts in ticks of up to 10 ms.
static bool is_silent(int fd, std::chrono::milliseconds silence) noexcept {
  constexpr std::chrono::milliseconds ticks(20);
  tcp_info found{};
  socklen_t size = sizeof found;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &found, &size) == 0 &&
         std::chrono::milliseconds(found.tcpi_last_data_recv) + ticks >= silence;
}

// The handle of a running transfer has the local port of its connection, not the socket. Another
// host's connection may have the same port; if it is silent too, little is lost with it.
void connection_list::end_if_silent(CURL* transfer,
                                    std::chrono::milliseconds silence) const noexcept {
  long port = 0;
  curl_easy_getinfo(transfer, CURLINFO_LOCAL_PORT, &port);
  if (port <= 0) return;
  for (int fd : open_)
    if (local_port(fd) == port && is_silent(fd, silence)) shutdown(fd, SHUT_RD);
}

}  // namespace lade::io::http
