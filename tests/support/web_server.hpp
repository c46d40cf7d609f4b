// A web server in the test's process. The test determines its answers, also invalid ones.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lade::test {

struct web_request {
  std::string method;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  // The range of the header "Range: bytes=first-last"; all of `size` bytes without that header.
  std::pair<std::size_t, std::size_t> range(std::size_t size) const;
};

// An answer, and its deliberate faults.
struct web_reply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  bool is_chunked = false;
  std::optional<std::string> length = {};    // Content-Length; default: the body's size
  bool says_length = true;                   // if false, the end of the connection ends the body
  std::optional<std::size_t> cut_at = {};    // closes after this many bytes of the body
  std::optional<std::size_t> stall_at = {};  // stops sending after this many bytes
  std::function<void()> halfway = {};        // called when half of a body of known length is sent
  bool resets = false;                       // ends the connection by a reset, without an answer
  bool is_silent = false;                    // never answers
  std::optional<int> tunnel_to = {};         // passes bytes on to that port, as a proxy does
  std::optional<std::string> raw = {};       // sends these bytes instead of an answer, and closes
  std::string raw_without_end = {};          // sent after `raw`, repeated until the client closes
};

// Serves until it is destroyed. Each connection has its own thread, which calls `answer`; several
// may call it at a time.
class web_server {
 public:
  using answer_function = std::function<web_reply(const web_request&)>;

  // `keeps_requests`: whether seen() returns the requests. `address`: address to serve on.
  explicit web_server(answer_function answer, bool keeps_requests = true,
                      const char* address = "127.0.0.1");
  web_server(const web_server&) = delete;
  ~web_server();

  std::string url(std::string_view target = "/") const;
  std::string host() const { return address_ + ":" + std::to_string(port_); }
  int port() const { return port_; }
  std::size_t requests() const;
  std::size_t connections() const;       // all connections so far
  std::size_t open_connections() const;  // connections that are not closed
  std::vector<web_request> seen() const;

 private:
  struct connection {
    int fd = -1;
    std::thread thread;
  };

  void accept_all();
  void serve(int fd);
  bool send_reply(int fd, const web_request& to, const web_reply& reply);
  void join_closed();
  void relay(int fd, int port);

  answer_function answer_;
  bool keeps_requests_;
  std::string address_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  bool ending_ = false;  // guarded by mutex_, like the members below
  std::list<connection> connections_;
  std::size_t accepted_ = 0;
  std::size_t requests_ = 0;
  std::vector<web_request> seen_;
  std::thread accepting_;
};

// A reply with a file's content, or with the requested range of it, and an entity tag.
web_reply file_reply(const web_request& to, std::string_view content,
                     const std::string& etag = "\"v1\"");

}  // namespace lade::test
