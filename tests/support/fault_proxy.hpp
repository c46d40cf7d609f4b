// A proxy that injects network faults between a client and a server outside of the test's process.

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

// A fault of a connection. It happens once, at one byte of the responses or of the requests. The
// proxy passes on all bytes before it. If the connection ends earlier, the fault does not happen.
// All bytes of the connection count: those of TLS handshakes, and of all requests on a kept
// connection.
struct wire_fault {
  enum class kind : std::uint8_t {
    none,
    cut,    // the connection ends, as if the other end had closed it
    reset,  // both ends receive a reset
    stall,  // the connection stays open, but passes no bytes on in either direction
    damage  // one bit of the byte is inverted; the connection continues
  };

  kind what = kind::none;
  std::uint64_t at = 0;
  bool of_request = false;  // whether `at` counts bytes of the client, not of the server
  unsigned bit = 0;         // for `damage`: number of the bit, 0 to 7
};

// Passes bytes between its clients and a port of this machine, until it is destroyed. Each
// connection has its own thread. If the server closes a connection, the client receives all bytes
// before its end. If the client closes it, the proxy closes the connection to the server.
class fault_proxy {
 public:
  // `fault_of`: returns the fault of a connection. Called on one thread with the number of each
  // connection, from 0, in the order of their arrival. Throws std::runtime_error if the proxy
  // cannot open its socket.
  using fault_function = std::function<wire_fault(std::size_t connection)>;
  fault_proxy(int to_port, fault_function fault_of);
  fault_proxy(const fault_proxy&) = delete;
  ~fault_proxy();

  int port() const { return port_; }
  std::size_t connections() const;  // all connections so far, also closed ones
  std::size_t used() const;         // connections over which the client has sent a byte
  std::size_t struck() const;       // connections whose fault has happened

 private:
  struct connection {
    int client = -1;  // -1 if closed, as `server`; both are guarded by mutex_
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
  bool ending_ = false;  // guarded by mutex_, like the members below
  std::list<connection> connections_;
  std::size_t accepted_ = 0;
  std::size_t used_ = 0;
  std::size_t struck_ = 0;
  std::thread accepting_;
};

}  // namespace lade::test
