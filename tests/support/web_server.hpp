// A web server in the test's process that answers as the test says, also wrongly.

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

  // Of "Range: bytes=first-last"; the whole of `size` bytes if there is none.
  std::pair<std::size_t, std::size_t> range(std::size_t size) const;
};

// What to answer, and what to do wrong.
struct web_reply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  bool is_chunked = false;
  std::optional<std::string> length = {};    // Content-Length, if it is not to be the body's
  bool says_length = true;                   // otherwise the end of the connection ends the body
  std::optional<std::size_t> cut_at = {};    // closes after so many bytes of the body
  std::optional<std::size_t> stall_at = {};  // sends nothing more after so many bytes
  std::function<void()> halfway = {};        // called when half of a body of known length is sent
  bool resets = false;                       // ends the connection by a reset, without an answer
  bool is_silent = false;                    // never answers
  std::optional<int> tunnel_to = {};         // passes bytes on to that port, as a proxy does
  std::optional<std::string> raw = {};       // sends these bytes instead of all that, and closes
  std::string raw_without_end = {};          // behind these, and as often as somebody receives
};

// Serves until it is destroyed, each connection on a thread of its own. `answer` is
// called on these threads, several at a time.
class web_server {
 public:
  using answer_function = std::function<web_reply(const web_request&)>;

  // `keeps_requests`: whether seen() has them. `address`: where it serves.
  explicit web_server(answer_function answer, bool keeps_requests = true,
                      const char* address = "127.0.0.1");
  web_server(const web_server&) = delete;
  ~web_server();

  std::string url(std::string_view target = "/") const;
  std::string host() const { return address_ + ":" + std::to_string(port_); }
  int port() const { return port_; }
  std::size_t requests() const;
  std::size_t connections() const;       // that were made
  std::size_t open_connections() const;  // and not closed
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
  bool ending_ = false;  // guarded by mutex_, as all that follows
  std::list<connection> connections_;
  std::size_t accepted_ = 0;
  std::size_t requests_ = 0;
  std::vector<web_request> seen_;
  std::thread accepting_;
};

// A reply with a file's content, or the part that is asked for, under an entity tag.
web_reply file_reply(const web_request& to, std::string_view content,
                     const std::string& etag = "\"v1\"");

}  // namespace lade::test
