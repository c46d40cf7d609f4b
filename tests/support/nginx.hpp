// A real web server, nginx, on 127.0.0.1 as long as the object lives, and certificates for it.

#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "temp_dir.hpp"

namespace lade::test {

// Where nginx and the openssl command are; tests skip where one is missing.
bool has_nginx();

class nginx {
 public:
  // `server`: directives of its server block, without "listen". Its files are those of
  // directory() / "www". `certificate`: a PEM file with certificate and key, for TLS and HTTP/2;
  // none if empty. Throws std::runtime_error if it cannot be started.
  explicit nginx(const std::string& server = {}, const std::string& certificate = {});
  nginx(const nginx&) = delete;
  ~nginx();

  const testing_support::temp_dir& directory() const { return directory_; }
  int port() const { return port_; }
  std::string url(std::string_view host, std::string_view target) const;

  // How many connections have carried requests, which the log says. Stops the server.
  std::size_t stop_and_count_connections();

 private:
  void start(int listener, const std::string& config);
  void stop();

  testing_support::temp_dir directory_;
  int port_ = 0;
  bool is_secure_;
  pid_t process_ = -1;
};

// Certificates of an authority that nobody knows.
class test_authority {
 public:
  test_authority();

  std::string file() const { return directory_ / "ca.pem"; }

  // A directory with its certificate under the name by which OpenSSL looks for it.
  std::string folder() const;

  // A PEM file with a certificate and its key, for a name that servers have or clients.
  std::string certificate(const std::string& name);

 private:
  void request_certificate(const std::string& arguments) const;
  void shell(const std::string& command) const;

  testing_support::temp_dir directory_;
};

}  // namespace lade::test
