// A network that delays packets and loses some of them.

#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace lade::test {

// Moves the calling thread, and threads that it starts later, into a network of one interface with
// the address 10.77.0.1. A packet to 10.77.0.2 arrives at the same port of 10.77.0.1 after `delay`,
// unless it is lost. So clients reach a server on 10.77.0.1 at 10.77.0.2.
class lossy_network {
 public:
  // `loss`: one of this many packets is lost. Throws std::system_error without the capabilities
  // CAP_SYS_ADMIN and CAP_NET_ADMIN, or without /dev/net/tun.
  lossy_network(std::uint64_t loss, std::chrono::nanoseconds delay, std::uint64_t seed);
  lossy_network(const lossy_network&) = delete;
  ~lossy_network();

  static constexpr const char* server = "10.77.0.1";
  static constexpr const char* seen_by_clients = "10.77.0.2";

 private:
  void set_up();
  void forward(std::uint64_t loss, std::chrono::nanoseconds delay, std::uint64_t seed);

  int device_ = -1;
  int ending_ = -1;  // an eventfd
  std::thread forwarding_;
};

}  // namespace lade::test
