#include "web_server.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lade::test {

std::pair<std::size_t, std::size_t> web_request::range(std::size_t size) const {
  auto found = headers.find("range");
  if (found == headers.end()) return {0, size};
  auto text = found->second.substr(found->second.find('=') + 1);
  auto dash = text.find('-');
  auto first = std::stoull(text.substr(0, dash));
  auto last = dash + 1 < text.size() ? std::stoull(text.substr(dash + 1)) + 1 : size;
  return {std::min<std::size_t>(first, size), std::min<std::size_t>(last, size)};
}

web_server::web_server(answer_function answer, bool keeps_requests, const char* at)
    : answer_(std::move(answer)), keeps_requests_(keeps_requests), address_(at) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, at, &address.sin_addr);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || bind(listener_, generic, size) != 0 || listen(listener_, 1024) != 0 ||
      getsockname(listener_, generic, &size) != 0)
    throw std::runtime_error("web_server: no socket");
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

web_server::~web_server() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    for (auto& each : connections_)
      if (each.fd >= 0) shutdown(each.fd, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  close(listener_);
  for (auto& each : connections_) each.thread.join();
}

std::string web_server::url(std::string_view target) const {
  return "http://" + host() + std::string(target);
}

std::size_t web_server::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t web_server::connections() const {
  std::lock_guard lock(mutex_);
  return accepted_;
}

std::size_t web_server::open_connections() const {
  std::lock_guard lock(mutex_);
  auto is_open = [](const connection& each) { return each.fd >= 0; };
  return static_cast<std::size_t>(std::ranges::count_if(connections_, is_open));
}

std::vector<web_request> web_server::seen() const {
  std::lock_guard lock(mutex_);
  return seen_;
}

void web_server::accept_all() {
  while (true) {
    int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    std::lock_guard lock(mutex_);
    if (ending_ || fd < 0) {
      if (fd >= 0) close(fd);
      return;
    }
    join_closed();
    ++accepted_;
    auto& added = connections_.emplace_back();
    added.fd = fd;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    added.thread = std::thread([this, fd, &added] {
      serve(fd);
      std::lock_guard closing(mutex_);
      close(std::exchange(added.fd, -1));
    });
  }
}

void web_server::join_closed() {
  std::erase_if(connections_, [](connection& each) {
    if (each.fd < 0) each.thread.join();
    return each.fd < 0;
  });
}

static bool send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    auto sent = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

static bool receive_more(int fd, std::string& into) {
  char bytes[16384];
  auto got = recv(fd, bytes, sizeof bytes, 0);
  if (got > 0) into.append(bytes, static_cast<std::size_t>(got));
  return got > 0;
}

static web_request parse_request(const std::string& head) {
  web_request request;
  auto end = head.find("\r\n");
  auto line = head.substr(0, end);
  request.method = line.substr(0, line.find(' '));
  auto rest = line.substr(request.method.size() + 1);
  request.target = rest.substr(0, rest.rfind(' '));
  while ((end + 2) < head.size()) {
    auto begin = end + 2;
    end = head.find("\r\n", begin);
    auto header = head.substr(begin, end - begin);
    auto colon = header.find(':');
    if (colon == std::string::npos) break;
    auto name = header.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    auto value = header.find_first_not_of(' ', colon + 1);
    request.headers[name] = value == std::string::npos ? "" : header.substr(value);
  }
  return request;
}

void web_server::serve(int fd) {
  std::string received;
  while (true) {
    std::size_t head_end = 0;
    while ((head_end = received.find("\r\n\r\n")) == std::string::npos)
      if (!receive_more(fd, received)) return;
    auto request = parse_request(received.substr(0, head_end + 2));
    received.erase(0, head_end + 4);
    auto length = request.headers.count("content-length")
                      ? std::stoull(request.headers["content-length"])
                      : 0;
    while (received.size() < length)
      if (!receive_more(fd, received)) return;
    request.body = received.substr(0, length);
    received.erase(0, length);
    {
      std::lock_guard lock(mutex_);
      ++requests_;
      if (keeps_requests_) seen_.push_back(request);
    }
    if (!send_reply(fd, request, answer_(request))) return;
  }
}

// Until the client closes the connection, or the server ends.
static void wait_for_end(int fd) {
  std::string ignored;
  while (receive_more(fd, ignored)) {}
}

// Until one of both ends closes.
void web_server::relay(int fd, int port) {
  int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  bool is_open = connect(other, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  pollfd ends[] = {{fd, POLLIN, 0}, {other, POLLIN, 0}};
  while (is_open && poll(ends, 2, -1) > 0) {
    for (int from : {0, 1}) {
      if (ends[from].revents == 0) continue;
      std::string bytes;
      is_open = is_open && receive_more(ends[from].fd, bytes) && send_all(ends[1 - from].fd, bytes);
    }
  }
  close(other);
}

// Returns whether the connection may be used again.
bool web_server::send_reply(int fd, const web_request& to, const web_reply& reply) {
  if (reply.is_silent) {
    wait_for_end(fd);
    return false;
  }
  if (reply.resets) {
    linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return false;
  }
  if (reply.tunnel_to) {
    if (send_all(fd, "HTTP/1.1 200 Connected\r\n\r\n")) relay(fd, *reply.tunnel_to);
    return false;
  }
  if (reply.raw) {
    bool is_open = send_all(fd, *reply.raw) && !reply.raw_without_end.empty();
    while (is_open) is_open = send_all(fd, reply.raw_without_end);
    return false;
  }
  auto text = "HTTP/1.1 " + std::to_string(reply.status) + " Text\r\n";
  for (auto& [name, value] : reply.headers) text += name + ": " + value + "\r\n";
  if (reply.is_chunked)
    text += "Transfer-Encoding: chunked\r\n";
  else if (reply.says_length)
    text += "Content-Length: " + reply.length.value_or(std::to_string(reply.body.size())) + "\r\n";
  else
    text += "Connection: close\r\n";
  text += "\r\n";
  if (!send_all(fd, text)) return false;
  if (to.method == "HEAD") return true;

  auto body = std::string_view(reply.body);
  auto end = std::min(
      {body.size(), reply.cut_at.value_or(body.size()), reply.stall_at.value_or(body.size())});
  body = body.substr(0, end);
  if (reply.is_chunked) {
    std::string chunked;
    for (std::size_t begin = 0; begin < body.size(); begin += 10'000) {
      auto part = body.substr(begin, 10'000);
      char size[32];
      (void)snprintf(size, sizeof size, "%zx\r\n", part.size());
      chunked += size + std::string(part) + "\r\n";
    }
    if (!reply.cut_at) chunked += "0\r\n\r\n";
    if (!send_all(fd, chunked)) return false;
  } else {
    auto half = body.size() / 2;
    if (!send_all(fd, body.substr(0, half))) return false;
    if (reply.halfway) reply.halfway();
    if (!send_all(fd, body.substr(half))) return false;
  }
  if (reply.stall_at) wait_for_end(fd);
  return !reply.cut_at && !reply.stall_at && reply.says_length;
}

web_reply file_reply(const web_request& to, std::string_view content, const std::string& etag) {
  web_reply reply;
  reply.headers.emplace_back("ETag", etag);
  reply.headers.emplace_back("Accept-Ranges", "bytes");
  if (auto wanted = to.headers.find("if-match");
      wanted != to.headers.end() && wanted->second != etag) {
    reply.status = 412;
    return reply;
  }
  auto [first, end] = to.range(content.size());
  if (to.headers.count("range")) {
    if (first >= content.size()) {
      reply.status = 416;
      reply.headers.emplace_back("Content-Range", "bytes */" + std::to_string(content.size()));
      return reply;
    }
    reply.status = 206;
    reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                    std::to_string(end - 1) + "/" +
                                                    std::to_string(content.size()));
  }
  reply.body = content.substr(first, end - first);
  return reply;
}

}  // namespace lade::test
