#include "lossy_network.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lade::test {

static int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

static sockaddr address_of(const char* text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, text, &address.sin_addr);
  sockaddr generic;
  std::memcpy(&generic, &address, sizeof generic);
  return generic;
}

lossy_network::lossy_network(std::uint64_t loss, std::chrono::nanoseconds delay,
                             std::uint64_t seed) {
  checked(unshare(CLONE_NEWNET), "unshare the network");
  device_ = checked(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "/dev/net/tun");
  try {
    set_up();
  } catch (...) {
    close(device_);
    throw;
  }
  ending_ = eventfd(0, EFD_CLOEXEC);
  forwarding_ = std::thread([=, this] { forward(loss, delay, seed); });
}

lossy_network::~lossy_network() {
  eventfd_write(ending_, 1);
  forwarding_.join();
  close(ending_);
  close(device_);
}

void lossy_network::set_up() {
  ifreq request{};
  std::strcpy(request.ifr_name, "lossy");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  checked(ioctl(device_, TUNSETIFF, &request), "an interface");
  int any = checked(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "a socket");
  auto set = [&](unsigned long what) { return ioctl(any, what, &request); };
  request.ifr_addr = address_of(server);
  int result = set(SIOCSIFADDR);
  request.ifr_addr = address_of("255.255.255.0");
  if (result == 0) result = set(SIOCSIFNETMASK);
  request.ifr_qlen = 20'000;  // packets are to be lost here only
  if (result == 0) result = set(SIOCSIFTXQLEN);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (result == 0) result = set(SIOCSIFFLAGS);
  int reason = errno;
  close(any);
  errno = reason;
  checked(result, "an address");
}

// Checksums cover both addresses, in either order.
static void swap_addresses(std::string& packet) {
  std::swap_ranges(packet.begin() + 12, packet.begin() + 16, packet.begin() + 16);
}

void lossy_network::forward(std::uint64_t loss, std::chrono::nanoseconds delay,
                            std::uint64_t seed) {
  using clock = std::chrono::steady_clock;
  std::mt19937_64 draw(seed);
  std::deque<std::pair<clock::time_point, std::string>> on_the_way;
  pollfd wait_for[] = {{device_, POLLIN, 0}, {ending_, POLLIN, 0}};
  while (wait_for[1].revents == 0) {
    auto left =
        on_the_way.empty() ? std::chrono::hours(1) : on_the_way.front().first - clock::now();
    auto nanoseconds = std::max<std::int64_t>(0, std::chrono::nanoseconds(left).count());
    timespec longest{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    ppoll(wait_for, 2, &longest, nullptr);
    char bytes[2048];
    for (ssize_t got = 0; (got = read(device_, bytes, sizeof bytes)) > 0;) {
      std::string packet(bytes, static_cast<std::size_t>(got));
      bool is_ipv4 = packet.size() >= 20 && (packet[0] >> 4 & 15) == 4;
      if (!is_ipv4 || draw() % loss == 0) continue;
      swap_addresses(packet);
      on_the_way.emplace_back(clock::now() + delay, std::move(packet));
    }
    for (; !on_the_way.empty() && on_the_way.front().first <= clock::now(); on_the_way.pop_front())
      (void)!write(device_, on_the_way.front().second.data(), on_the_way.front().second.size());
  }
}

}  // namespace lade::test
