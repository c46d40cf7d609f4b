// A network that delays packets and loses some of them.

#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace lade::test {

// A network for the calling thread and those that it starts from then on, which have no other: an
// interface with the address 10.77.0.1. What is sent to 10.77.0.2 comes back to the same port of
// 10.77.0.1, after `delay`, unless it is lost: so a server at the one is reached by the other.
class lossy_network {
 public:
  // `loss`: of how many packets one is lost. Throws std::system_error where that is not allowed
  // (CAP_SYS_ADMIN, CAP_NET_ADMIN) or there is no /dev/net/tun.
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
