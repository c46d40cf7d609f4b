// A small web server from which Prometheus fetches metrics.

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
  std::string_view address = "127.0.0.1";  // an IPv4 or IPv6 address; "0.0.0.0" for all of them
  std::uint16_t port = 0;                  // 0: a free one; see port()

  // What bounds the clients: one that takes longer is hung up on, those beyond wait in the queue
  // of the system. From a millisecond to a day, and from 1 to 65,536.
  std::chrono::milliseconds timeout = std::chrono::seconds(5);
  std::size_t connections = 16;

  // Tells process_proportional_memory_bytes too, for which the kernel walks through all pages with
  // every answer; see process.hpp.
  bool pss = false;
};

// Answers GET /metrics over HTTP/1.1 with the figures of the process and of all sources, on one
// thread of its own. It asks for no password: what it tells is for whoever reaches the address.
//
//   lade::metrics_server server({.port = 9100});
//   auto run = runtime.run(batches);
//   auto shown = server.add("train", [&] { return run.statistics(); });
class metrics_server {
 public:
  class registration;

  // Throws error with the system's reason if it cannot listen there, and error(invalid_argument)
  // for what is no address, for no connections or no time.
  explicit metrics_server(const metrics_server_options& options = {});

  // Hangs up on all clients.
  ~metrics_server();

  std::uint16_t port() const noexcept;

  // Adds what `source` gives, labelled run="name", as long as the registration lives, which may
  // be longer than the server. Sources are called one at a time on the server's thread, and must
  // not add or remove any. While one throws, all answers are its failure (500). Throws
  // error(invalid_argument) for a name that another registration has, whose samples would be the
  // same; what functions add by themselves must differ in its labels.
  [[nodiscard]] registration add(std::string name, std::function<run_statistics()> source);
  [[nodiscard]] registration add(std::function<void(metrics&)> source);

 private:
  class clients;
  class sources;

  std::shared_ptr<sources> sources_;
  std::unique_ptr<clients> clients_;
};

// Its destructor removes the source and waits while it is being called.
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

// The first line of an HTTP/1 request, without its end. Nothing if it is none.
struct request_line {
  std::string_view method;
  std::string_view path;  // without what follows a question mark
};
std::optional<request_line> parse_request_line(std::string_view line);

}  // namespace detail
}  // namespace lade
