// A request's route through redirects: one transfer per hop.

#pragma once

#include "attempt.hpp"
#include "failures.hpp"
#include "origin.hpp"

#include <lade/task.hpp>

#include <optional>
#include <string>

namespace lade::io::http {

// The next hop of a request.
struct route {
  explicit route(const request& request) : url(request.url()), at(url) {}

  std::string url;
  origin at;
  bool is_own = true;  // `at` is the request's origin, which may receive its credentials
  unsigned redirects = 0;
  bool token_was_refused = false;
};

// Makes the headers of a hop, with tokens and signatures. Call before permits are acquired: a token
// function may itself send requests.
task<header_list> make_headers(client::state& client, const request& request, const route& way,
                               std::string if_match);

// Sets a transfer up for a hop, with its headers.
void set_up(transfer& hop, const request& request, const route& way, const byte_range& range,
            const header_list& headers);

// Makes a request to a host known to support HTTP/2 wait for a connection in progress and share it.
// For other hosts, a request opens its own: waiting for the first response would gain nothing.
void share_connection(client::state& client, transfer& hop, const origin& host);

// Records whether the host has answered over HTTP/2.
void record_version(client::state& client, const transfer& ended, const origin& host);

// The addresses of a host, or the failure of the lookup. Neither, if a proxy looks it up.
struct found_host {
  std::string addresses;
  std::optional<failed_attempt> failure;
};

// Looks up the host of a hop. Call before a permit is acquired: a silent name server must not delay
// requests to other hosts.
task<found_host> look_up(const client::state& client, const route& way);

// Makes a hop use these addresses.
void set_addresses(const client::state& client, transfer& hop, const route& way,
                   const std::string& addresses);

// Returns whether a finished transfer leads to another hop, and then updates `way`. Sets `refused`
// if the redirect is not allowed.
bool follows_redirect(const client::state& client, const request& request, const transfer& ended,
                      route& way, std::optional<failed_attempt>& refused);

// Adds the URL of the hop to the failure, unless it is the URL of the request.
void name_hop(const route& way, failed_attempt& failure);

}  // namespace lade::io::http
