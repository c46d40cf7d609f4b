// metrics_server: a small HTTP server from which Prometheus fetches metrics.

#pragma once

#include <lade/metrics.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lade {

struct metrics_server_options {
  std::string_view address = "127.0.0.1";  // an IPv4 or IPv6 address; "0.0.0.0": all IPv4 addresses
  std::uint16_t port = 0;                  // 0: any free port; see port()

  // Limits for clients. `timeout`: longest time of a connection, which is then closed; a
  // millisecond to a day. `connections`: open connections; more of them wait in the system's queue;
  // 1 to 65,536.
  std::chrono::milliseconds timeout = std::chrono::seconds(5);
  std::size_t connections = 16;

  // Adds process_proportional_memory_bytes, for which the kernel walks through all pages for each
  // answer; see process.hpp.
  bool pss = false;
};

// Answers GET /metrics over HTTP/1.1 with the metrics of the process and of all sources, on one
// dedicated thread. There is no authentication: every client that reaches the address can read
// them.
//
//   lade::metrics_server server({.port = 9100});
//   auto run = runtime.run(batches);
//   auto shown = server.add("train", [&] { return run.statistics(); });
class metrics_server {
 public:
  class registration;

  // Throws error with the system's reason if it cannot listen there. Throws error(invalid_argument)
  // if `address` is not an address, or if `connections` or `timeout` is out of bounds.
  explicit metrics_server(const metrics_server_options& options = {});

  // Closes all connections.
  ~metrics_server();

  std::uint16_t port() const noexcept;

  // Adds a source of metrics. A source that returns run_statistics gets the label run="name".
  //
  // - Lifetime: the source stays as long as the registration, which may outlive the server.
  // - Thread: sources are called one at a time on the server's thread. They must not add or remove
  //   sources.
  // - Blocking: waits while the server calls the sources.
  // - Errors: while a source throws, every answer is its failure (500). Throws
  //   error(invalid_argument) if another registration has that name, because their samples would be
  //   the same. The samples of a source without a name must differ in their labels.
  [[nodiscard]] registration add(std::string name, std::function<run_statistics()> source);
  [[nodiscard]] registration add(std::function<void(metrics&)> source);

 private:
  class clients;
  class sources;

  std::shared_ptr<sources> sources_;
  std::unique_ptr<clients> clients_;
};

// The destructor removes the source. It blocks while sources are being called.
class metrics_server::registration {
 public:
  registration(registration&& other) noexcept = default;
  registration& operator=(registration&&) = delete;
  ~registration();

 private:
  friend class metrics_server;
  registration(std::shared_ptr<sources> of, std::uint64_t number) noexcept
      : sources_(std::move(of)), number_(number) {}

  std::shared_ptr<sources> sources_;
  std::uint64_t number_;
};

namespace detail {

// The first line of an HTTP/1 request, without its end of line. Nothing if it is malformed.
struct request_line {
  std::string_view method;
  std::string_view path;  // without a question mark and the query behind it
};
std::optional<request_line> parse_request_line(std::string_view line);

}  // namespace detail
}  // namespace lade
