// A web server that answers every request after the same delay, with the same body or with that of
// a file of a directory, or never. One thread, so that thousands of requests may wait at little
// cost.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "bench.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

// A connection with one request at a time.
struct peer {
  std::string request;
  const std::string* answer = nullptr;
  std::size_t sent = 0;  // of the answer
  bool is_answering = false;
  std::uint64_t number = 0;  // descriptors are used again
};

struct answer_due {
  clock_type::time_point when;
  int fd;
  std::uint64_t number;
};

// Answers by the paths of requests; that of the empty path is for all others.
using answers = std::unordered_map<std::string, std::string>;

std::string make_answer(std::string_view body) {
  auto head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\n\r\n";
  return head.append(body);
}

answers load_files(const std::string& directory) {
  answers all;
  for (auto& path : bench::list_files(directory)) {
    std::ifstream in(path, std::ios::binary);
    std::string body{std::istreambuf_iterator<char>(in), {}};
    all["/bucket" + path.substr(directory.size())] = make_answer(body);
  }
  return all;
}

class server {
 public:
  server(answers all, std::chrono::milliseconds delay, bool silent)
      : answers_(std::move(all)), delay_(delay), silent_(silent), epoll_(::epoll_create1(0)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    auto* address = reinterpret_cast<sockaddr*>(&where);
    if (::bind(listener_, address, size) != 0 || ::listen(listener_, 4096) != 0)
      bench::fail("cannot listen");
    ::getsockname(listener_, address, &size);
    watch(EPOLL_CTL_ADD, listener_, EPOLLIN);
    std::printf("%d\n", ntohs(where.sin_port));
    std::fflush(stdout);
  }

  [[noreturn]] void run() {
    epoll_event events[256];
    while (true) {
      auto left = time_left();
      int count = ::epoll_pwait2(epoll_, events, 256, due_.empty() ? nullptr : &left, nullptr);
      for (int i = 0; i < count; ++i) {
        int fd = events[i].data.fd;
        if (fd == listener_)
          accept_all();
        else if (events[i].events & EPOLLOUT)
          send_more(fd);
        else
          receive(fd);
      }
      for (auto now = clock_type::now(); !due_.empty() && due_.front().when <= now;) {
        auto next = due_.front();
        due_.pop_front();
        auto found = peers_.find(next.fd);
        if (found != peers_.end() && found->second.number == next.number) begin_answer(next.fd);
      }
    }
  }

 private:
  void watch(int operation, int fd, unsigned events) {
    epoll_event wanted{};
    wanted.events = events;
    wanted.data.fd = fd;
    ::epoll_ctl(epoll_, operation, fd, &wanted);
  }

  // To the next answer.
  timespec time_left() const {
    if (due_.empty()) return {};
    auto left = std::max<std::int64_t>((due_.front().when - clock_type::now()).count(), 0);
    return {left / 1'000'000'000, left % 1'000'000'000};
  }

  void accept_all() {
    int fd;
    while ((fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
      int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      peers_[fd].number = ++accepted_;
      watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
  }

  void close(int fd) {
    peers_.erase(fd);
    ::close(fd);
  }

  void receive(int fd) {
    auto& from = peers_[fd];
    char bytes[8192];
    auto got = ::recv(fd, bytes, sizeof bytes, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return close(fd);
    if (got > 0) from.request.append(bytes, static_cast<std::size_t>(got));
    if (!from.request.ends_with("\r\n\r\n")) return;
    from.answer = &answer_to(from.request);
    from.request.clear();
    if (!silent_) due_.push_back({clock_type::now() + delay_, fd, from.number});
  }

  const std::string& answer_to(const std::string& request) const {
    auto begin = request.find(' ') + 1;
    auto found = answers_.find(request.substr(begin, request.find(' ', begin) - begin));
    return found == answers_.end() ? answers_.at("") : found->second;
  }

  void begin_answer(int fd) {
    auto& to = peers_[fd];
    to.sent = 0;
    to.is_answering = true;
    send_more(fd);
  }

  void send_more(int fd) {
    auto& to = peers_[fd];
    if (!to.is_answering) return;
    auto& answer = *to.answer;
    auto done = ::send(fd, answer.data() + to.sent, answer.size() - to.sent, MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN) return close(fd);
    if (done > 0) to.sent += static_cast<std::size_t>(done);
    to.is_answering = to.sent < answer.size();
    watch(EPOLL_CTL_MOD, fd, to.is_answering ? EPOLLOUT : EPOLLIN);
  }

  answers answers_;
  std::chrono::milliseconds delay_;
  bool silent_;
  int epoll_;
  int listener_;
  std::uint64_t accepted_ = 0;
  std::unordered_map<int, peer> peers_;
  std::deque<answer_due> due_;  // in order, since all wait equally long
};

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "A web server on a free port, which it prints.");
  auto delay = options.number("delay-ms", 20, "from a request to its answer");
  auto directory = options.text("dir", "", "whose files are the bodies");
  auto bytes = options.number("bytes", 110'000, "of zeros, otherwise");
  bool silent = options.flag("silent", "never answers");
  options.done();

  auto all = directory.empty() ? answers() : load_files(directory);
  all[""] = make_answer(std::string(bytes, '\0'));
  server(std::move(all), std::chrono::milliseconds(delay), silent).run();
}
