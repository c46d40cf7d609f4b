#include <lade/detail/runtime/start_thread.hpp>

#include <lade/error.hpp>
#include <lade/metrics_server.hpp>
#include <lade/support/require.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lade {

class metrics_server::sources {
 public:
  explicit sources(const process_options& options) noexcept : process_(options) {}

  // `name`: must be unique; none for a source that labels its samples itself.
  std::uint64_t add(std::optional<std::string> name, std::function<void(metrics&)> source) {
    std::lock_guard lock(mutex_);
    auto has_name = [&](auto& each) { return each.second.name == name; };
    if (name && std::ranges::any_of(sources_, has_name))
      throw error(errc::invalid_argument, "metrics_server", "another source is named " + *name);
    sources_.emplace(next_, named{std::move(name), std::move(source)});
    return next_++;
  }

  void remove(std::uint64_t number) noexcept {
    std::lock_guard lock(mutex_);
    sources_.erase(number);
  }

  std::string text() {
    metrics all;
    all.add(read_process_statistics(process_));
    std::lock_guard lock(mutex_);
    for (auto& [number, each] : sources_) each.source(all);
    return all.text();
  }

 private:
  struct named {
    std::optional<std::string> name;
    std::function<void(metrics&)> source;
  };

  const process_options process_;
  std::mutex mutex_;
  std::map<std::uint64_t, named> sources_;
  std::uint64_t next_ = 0;
};

metrics_server::registration::~registration() {
  if (sources_) sources_->remove(number_);
}

namespace detail {

// A descriptor that closes itself.
class metrics_socket {
 public:
  explicit metrics_socket(int fd = -1) noexcept : fd_(fd) {}
  metrics_socket(metrics_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  metrics_socket& operator=(metrics_socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~metrics_socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

static std::string http_answer(std::string_view status, std::string_view body,
                               std::string_view more = {}) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: "
      "{}\r\nConnection: close\r\n{}\r\n{}",
      status, body.size(), more, body);
}

// One connection: receives a request, sends the answer, then drains the socket until the client
// closes it. Closing earlier could reset the connection before the client has read the answer.
class metrics_client {
 public:
  using answering = std::function<std::string(std::string_view)>;
  using clock = std::chrono::steady_clock;

  metrics_client(metrics_socket to, clock::time_point deadline)
      : socket_(std::move(to)), deadline_(deadline) {}

  pollfd wanted() const noexcept {
    return {socket_.get(), static_cast<short>(answered_ && !sent() ? POLLOUT : POLLIN), 0};
  }
  clock::time_point deadline() const noexcept { return deadline_; }

  // Makes progress without blocking. Returns whether to keep the connection.
  bool go_on(const answering& answer) {
    if (!answered_ && !receive(answer)) return false;
    if (!answered_) return true;
    if (!sent()) return send_some();
    return drain();
  }

 private:
  static constexpr std::size_t most_request_bytes = 8192;

  bool sent() const noexcept { return done_ == answer_.size(); }

  // Whether the failed call would block.
  static bool is_empty_now(ssize_t result) noexcept {
    return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  }

  bool receive(const answering& answer) {
    std::array<char, 2048> some;
    auto received = ::recv(socket_.get(), some.data(), some.size(), 0);
    if (received <= 0) return is_empty_now(received);
    request_.append(some.data(), static_cast<std::size_t>(received));
    bool complete = request_.find("\r\n\r\n") != std::string::npos ||
                    request_.find("\n\n") != std::string::npos;
    if (!complete && request_.size() <= most_request_bytes) return true;
    answer_ = complete ? answer(request_)
                       : http_answer("431 Request Header Fields Too Large", "too long\n");
    answered_ = true;
    return true;
  }

  bool send_some() {
    auto result =
        ::send(socket_.get(), answer_.data() + done_, answer_.size() - done_, MSG_NOSIGNAL);
    if (result < 0) return is_empty_now(result);
    done_ += static_cast<std::size_t>(result);
    if (sent()) ::shutdown(socket_.get(), SHUT_WR);
    return true;
  }

  bool drain() const {
    std::array<char, 2048> some;
    auto received = ::recv(socket_.get(), some.data(), some.size(), 0);
    return received > 0 || is_empty_now(received);
  }

  metrics_socket socket_;
  clock::time_point deadline_;
  std::string request_;
  std::string answer_;
  std::size_t done_ = 0;  // bytes of the answer that have been sent
  bool answered_ = false;
};

std::optional<request_line> parse_request_line(std::string_view line) {
  auto first = line.find(' ');
  auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  auto method = line.substr(0, first);
  auto path = line.substr(first + 1, last - first - 1);
  auto version = line.substr(last + 1);
  bool upper = std::ranges::all_of(method, [](char c) { return c >= 'A' && c <= 'Z'; });
  bool plain = std::ranges::all_of(path, [](char c) { return c > ' ' && c < 0x7f; });
  bool http1 = version == "HTTP/1.1" || version == "HTTP/1.0";
  if (method.empty() || !upper || !path.starts_with('/') || !plain || !http1) return std::nullopt;
  return request_line{method, path.substr(0, path.find('?'))};
}

}  // namespace detail

using detail::http_answer;
using detail::metrics_client;
using detail::metrics_socket;

// All connections, and the thread that serves them. That thread alone accesses clients_; the
// destructor wakes it through the eventfd ending_.
class metrics_server::clients {
 public:
  clients(const metrics_server_options& options, std::shared_ptr<sources> from);
  ~clients();

  std::uint16_t port() const;

 private:
  using clock = std::chrono::steady_clock;

  void serve();
  void accept_client();
  std::string answer(std::string_view request) const;
  std::string answer_to(const detail::request_line& asked) const;
  int milliseconds_left() const;

  const std::chrono::milliseconds timeout_;
  const std::size_t most_;
  std::shared_ptr<sources> sources_;
  metrics_socket listening_;
  metrics_socket ending_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<metrics_client> clients_;
  std::thread thread_;
};

// Sets `result` to the address to listen on, and returns its size. Throws error(invalid_argument)
// if the text is not an address.
static socklen_t socket_address(const metrics_server_options& options, const std::string& doing,
                                sockaddr_storage& result) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(result);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(result);
  const std::string address(options.address);
  if (inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(options.port);
    return sizeof v4;
  }
  if (inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1)
    throw error(errc::invalid_argument, doing, "not an IPv4 or IPv6 address");
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(options.port);
  return sizeof v6;
}

static metrics_socket listen_on(const metrics_server_options& options) {
  auto doing = fmt::format("listen on {}:{}", options.address, options.port);
  sockaddr_storage where{};
  auto size = socket_address(options, doing, where);
  metrics_socket made(::socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int on = 1;
  if (made.get() < 0 || setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(made.get(), reinterpret_cast<sockaddr*>(&where), size) != 0 ||
      listen(made.get(), SOMAXCONN) != 0)
    raise(errno, doing);
  return made;
}

static void require_bounds(const metrics_server_options& options) {
  support::require_count("metrics_server", "connections", options.connections,
                         {.least = 1, .most = support::most_threads});
  support::require_number("metrics_server", "timeout in seconds",
                          std::chrono::duration<double>(options.timeout).count(), 1e-3, 86'400);
}

metrics_server::clients::clients(const metrics_server_options& options,
                                 std::shared_ptr<sources> from)
    : timeout_(options.timeout),
      most_(options.connections),
      sources_(std::move(from)),
      listening_(listen_on(options)) {
  if (ending_.get() < 0) raise(errno, "eventfd");
  thread_ = detail::start_thread("a metrics server", [this] { serve(); });
}

metrics_server::clients::~clients() {
  eventfd_write(ending_.get(), 1);
  thread_.join();
}

std::uint16_t metrics_server::clients::port() const {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  auto number = bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(bound).sin_port;
  return ntohs(number);
}

void metrics_server::clients::serve() {
  auto respond = [this](std::string_view request) { return answer(request); };
  while (true) {
    std::vector<pollfd> watched{{ending_.get(), POLLIN, 0}};
    bool full = clients_.size() >= most_;
    watched.push_back({full ? -1 : listening_.get(), POLLIN, 0});
    for (auto& each : clients_) watched.push_back(each.wanted());
    if (::poll(watched.data(), watched.size(), milliseconds_left()) < 0 && errno != EINTR) return;
    if (watched[0].revents != 0) return;

    auto now = clock::now();
    std::size_t at = 2;
    std::erase_if(clients_, [&](metrics_client& each) {
      bool ready = watched[at++].revents != 0;
      return now >= each.deadline() || (ready && !each.go_on(respond));
    });
    if (watched[1].revents != 0) accept_client();
  }
}

// If descriptors or memory are exhausted, the client waits in the backlog. The server then sleeps
// for a moment, since poll() would return at once.
void metrics_server::clients::accept_client() {
  metrics_socket client(
      ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (client.get() >= 0)
    clients_.emplace_back(std::move(client), clock::now() + timeout_);
  else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

int metrics_server::clients::milliseconds_left() const {
  if (clients_.empty()) return -1;
  auto first = std::ranges::min_element(clients_, {}, &metrics_client::deadline)->deadline();
  auto left = std::chrono::ceil<std::chrono::milliseconds>(first - clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

std::string metrics_server::clients::answer(std::string_view request) const {
  auto line = request.substr(0, request.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  auto asked = detail::parse_request_line(line);
  if (!asked) return http_answer("400 Bad Request", "this is no HTTP/1 request\n");
  auto answer = answer_to(*asked);
  if (asked->method == "HEAD") answer.erase(answer.find("\r\n\r\n") + 4);
  return answer;
}

std::string metrics_server::clients::answer_to(const detail::request_line& asked) const {
  if (asked.path != "/metrics") return http_answer("404 Not Found", "see /metrics\n");
  if (asked.method != "GET" && asked.method != "HEAD")
    return http_answer("405 Method Not Allowed", "only GET and HEAD\n", "Allow: GET, HEAD\r\n");
  try {
    return http_answer("200 OK", sources_->text());
  } catch (const std::exception& failure) {
    return http_answer("500 Internal Server Error", std::string(failure.what()) + "\n");
  } catch (...) {
    return http_answer("500 Internal Server Error", "an exception of unknown type\n");
  }
}

metrics_server::metrics_server(const metrics_server_options& options)
    : sources_(std::make_shared<sources>(process_options{.pss = options.pss})) {
  require_bounds(options);
  clients_ = std::make_unique<clients>(options, sources_);
}

metrics_server::~metrics_server() = default;

std::uint16_t metrics_server::port() const noexcept { return clients_->port(); }

metrics_server::registration metrics_server::add(std::string name,
                                                 std::function<run_statistics()> source) {
  auto labelled = [name, source = std::move(source)](metrics& all) {
    all.add(source(), {{"run", name}});
  };
  return {sources_, sources_->add(std::move(name), std::move(labelled))};
}

metrics_server::registration metrics_server::add(std::function<void(metrics&)> source) {
  return {sources_, sources_->add(std::nullopt, std::move(source))};
}

}  // namespace lade
