// A pool of libcurl's easy handles with the options of a client.

#pragma once

#include "proxies.hpp"

#include <lade/io/http/client.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <curl/curl.h>

namespace lade::io::http {

// client_options with owned copies of its strings.
struct client_settings {
  // Throws error(invalid_argument) naming an invalid option.
  explicit client_settings(const client_options& requested);

  client_options options;
  std::string ca_file, ca_directory, certificate, private_key, proxy, no_proxy, netrc_file,
      user_agent;

  proxies through;

  bool has_netrc() const noexcept { return options.netrc || !netrc_file.empty(); }
};

struct free_easy_handle {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
using easy_handle = std::unique_ptr<CURL, free_easy_handle>;

// Any thread.
class easy_handles {
 public:
  explicit easy_handles(const client_settings& settings) noexcept : settings_(settings) {}

  // Returns a handle with the client's options, but without a URL, a method, headers and callbacks.
  easy_handle take();
  void give_back(easy_handle handle) noexcept;

 private:
  static constexpr std::size_t most_kept = 512;

  void set_options(CURL* easy) const;
  void set_modes(CURL* easy) const noexcept;
  CURLcode set_no_proxy(CURL* easy) const noexcept;
  CURLcode set_certificate(CURL* easy) const noexcept;

  const client_settings& settings_;
  std::mutex mutex_;
  std::vector<easy_handle> kept_;  // guarded by mutex_
};

}  // namespace lade::io::http
