// A network that fails between a client and a server that is not ours.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace lade::test {

// What happens to a connection, once, at a byte of what the server sends over it or the client. All
// bytes before are passed on; bytes that never come are never struck. Bytes are those of the
// network: TLS handshakes count, and connections that are kept go on counting.
struct wire_fault {
  enum class kind : std::uint8_t {
    none,
    cut,    // the connection ends, as if the other end had closed it
    reset,  // it ends by a reset, for both ends
    stall,  // nothing is passed on from then on, either way, and it stays open
    damage  // one bit of the byte is another; all goes on
  };

  kind what = kind::none;
  std::uint64_t at = 0;
  bool of_request = false;  // counted in what the client sends
  unsigned bit = 0;         // that is damaged, 0 to 7
};

// Passes bytes between whoever connects to it and a port of this machine, until it is destroyed,
// each connection on a thread of its own. An end of a connection that the server makes is passed on
// after all that it has sent; one that the client makes closes the server's too.
class fault_proxy {
 public:
  // `fault_of`: called with 0, 1, 2, ... for the connections in the order of their arrival, on one
  // thread. Throws std::runtime_error if it has no socket.
  using fault_function = std::function<wire_fault(std::size_t connection)>;
  fault_proxy(int to_port, fault_function fault_of);
  fault_proxy(const fault_proxy&) = delete;
  ~fault_proxy();

  int port() const { return port_; }
  std::size_t connections() const;  // that were made, those included that the client has ended
  std::size_t used() const;         // connections over which the client has sent a byte
  std::size_t struck() const;       // connections whose fault has happened

 private:
  struct connection {
    int client = -1;  // guarded by mutex_, as `server`; -1 where it is closed
    int server = -1;
    wire_fault fault = {};
    std::uint64_t passed[2] = {0, 0};  // bytes of the client, and of the server
    std::thread thread = {};
  };

  void accept_all();
  void serve(connection& each);
  bool pass_on(connection& each, bool of_request);
  bool strike(connection& each);
  void end(connection& each);
  void join_ended();

  fault_function fault_of_;
  int to_port_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  bool ending_ = false;  // guarded by mutex_, as all that follows
  std::list<connection> connections_;
  std::size_t accepted_ = 0;
  std::size_t used_ = 0;
  std::size_t struck_ = 0;
  std::thread accepting_;
};

}  // namespace lade::test
