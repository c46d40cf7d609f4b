#include "fault_proxy.hpp"

#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lade::test {

static sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

static void send_at_once(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

fault_proxy::fault_proxy(int to_port, fault_function fault_of)
    : fault_of_(std::move(fault_of)), to_port_(to_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || bind(listener_, generic, size) != 0 || listen(listener_, 1024) != 0 ||
      getsockname(listener_, generic, &size) != 0)
    throw std::runtime_error("fault_proxy: no socket");
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

fault_proxy::~fault_proxy() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    for (auto& each : connections_)
      for (int fd : {each.client, each.server})
        if (fd >= 0) shutdown(fd, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  close(listener_);
  for (auto& each : connections_) each.thread.join();
}

// Whether one has come that is not accepted yet, or the socket has been shut down.
static bool has_arrived(int listener, int timeout_ms) {
  pollfd watched{listener, POLLIN, 0};
  return poll(&watched, 1, timeout_ms) > 0;
}

std::size_t fault_proxy::connections() const {
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (!has_arrived(listener_, 0)) return accepted_;
    }
    std::this_thread::yield();
  }
}

std::size_t fault_proxy::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

std::size_t fault_proxy::struck() const {
  std::lock_guard lock(mutex_);
  return struck_;
}

void fault_proxy::accept_all() {
  while (has_arrived(listener_, -1)) {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    join_ended();
    auto& added = connections_.emplace_back();
    added.client = client;
    added.server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    added.fault = fault_of_(accepted_++);
    added.thread = std::thread([this, &added] { serve(added); });
  }
}

void fault_proxy::join_ended() {
  std::erase_if(connections_, [](connection& each) {
    if (each.client < 0) each.thread.join();
    return each.client < 0;
  });
}

void fault_proxy::serve(connection& each) {
  auto address = loopback(to_port_);
  bool is_open = connect(each.server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  send_at_once(each.client);
  send_at_once(each.server);
  pollfd ends[] = {{each.client, POLLIN, 0}, {each.server, POLLIN, 0}};
  while (is_open && poll(ends, 2, -1) > 0)
    for (bool of_request : {true, false})
      if (is_open && ends[of_request ? 0 : 1].revents != 0) is_open = pass_on(each, of_request);
  end(each);
}

static bool send_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    auto sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Until the other end has closed the connection, or the proxy ends; takes what comes only if that
// is to be thrown away.
static void await_end(int fd, bool takes) {
  if (takes) {
    char ignored[16384];
    while (recv(fd, ignored, sizeof ignored, 0) > 0) {}
  } else {
    pollfd watched{fd, POLLRDHUP, 0};
    poll(&watched, 1, -1);
  }
}

// Forwards what one end has sent. Returns whether the connection stays open.
bool fault_proxy::pass_on(connection& each, bool of_request) {
  char bytes[16384];
  auto got = recv(of_request ? each.client : each.server, bytes, sizeof bytes, 0);
  if (got < 0 || (got == 0 && of_request)) return false;
  int to = of_request ? each.server : each.client;
  if (got == 0) {  // closing at once would reset what the client has not read yet
    shutdown(to, SHUT_WR);
    await_end(to, true);
    return false;
  }
  auto count = static_cast<std::uint64_t>(got);
  auto& passed = each.passed[of_request ? 0 : 1];
  auto first = std::exchange(passed, passed + count);
  if (of_request && first == 0) {
    std::lock_guard lock(mutex_);
    ++used_;
  }
  auto& fault = each.fault;
  bool is_struck = fault.what != wire_fault::kind::none && fault.of_request == of_request &&
                   first <= fault.at && fault.at < passed;
  auto before = is_struck ? fault.at - first : count;
  if (!send_whole(to, {bytes, before})) return false;
  if (!is_struck) return true;
  if (!strike(each)) return false;
  bytes[before] = static_cast<char>(bytes[before] ^ (1 << fault.bit));
  return send_whole(to, {bytes + before, count - before});
}

static void reset_at_end(int fd) {
  linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

// Returns whether the connection stays open.
bool fault_proxy::strike(connection& each) {
  {
    std::lock_guard lock(mutex_);
    ++struck_;
  }
  switch (each.fault.what) {
    case wire_fault::kind::cut:
      shutdown(each.client, SHUT_WR);
      shutdown(each.server, SHUT_RDWR);
      await_end(each.client, true);
      return false;
    case wire_fault::kind::reset:
      reset_at_end(each.client);
      reset_at_end(each.server);
      return false;
    case wire_fault::kind::stall: await_end(each.client, false); return false;
    default: return true;
  }
}

// Once it is closed, the thread is joined: nothing may follow.
void fault_proxy::end(connection& each) {
  std::lock_guard lock(mutex_);
  close(std::exchange(each.client, -1));
  close(std::exchange(each.server, -1));
}

}  // namespace lade::test
