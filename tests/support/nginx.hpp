// The web server nginx, which serves on 127.0.0.1 while an object lives, and certificates for it.

#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "temp_dir.hpp"

namespace lade::test {

// Whether nginx and the openssl command are installed. Tests skip if one is missing.
bool has_nginx();

class nginx {
 public:
  // Serves the files of directory() / "www". `server`: directives of its server block, without
  // "listen". `certificate`: a PEM file with certificate and key, for TLS and HTTP/2; if empty,
  // serves without TLS. Throws std::runtime_error if nginx cannot be started.
  explicit nginx(const std::string& server = {}, const std::string& certificate = {});
  nginx(const nginx&) = delete;
  ~nginx();

  const testing_support::temp_dir& directory() const { return directory_; }
  int port() const { return port_; }
  std::string url(std::string_view host, std::string_view target) const;

  // Stops the server. Returns the number of connections with requests, according to its log.
  std::size_t stop_and_count_connections();

 private:
  void start(int listener, const std::string& config);
  void stop();

  testing_support::temp_dir directory_;
  int port_ = 0;
  bool is_secure_;
  pid_t process_ = -1;
};

// Certificates of an authority that is not trusted by default.
class test_authority {
 public:
  test_authority();

  std::string file() const { return directory_ / "ca.pem"; }

  // A directory that contains the authority's certificate under the name that OpenSSL searches for.
  std::string folder() const;

  // A PEM file with a certificate and its key for a server or client of this name.
  std::string certificate(const std::string& name);

 private:
  void request_certificate(const std::string& arguments) const;
  void shell(const std::string& command) const;

  testing_support::temp_dir directory_;
};

}  // namespace lade::test
