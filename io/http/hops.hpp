// The way of a request through redirects: one transfer for each hop.

#pragma once

#include "attempt.hpp"
#include "failures.hpp"
#include "origin.hpp"

#include <lade/task.hpp>

#include <optional>
#include <string>

namespace lade::io::http {

// Where a request goes next.
struct route {
  explicit route(const request& request) : url(request.url()), at(url) {}

  std::string url;
  origin at;
  bool is_own = true;  // `at` is the request's own origin, which may see what only that may see
  unsigned redirects = 0;
  bool token_was_refused = false;
};

// The headers of a request to where the way has led, with tokens and signatures. Before permits are
// acquired: a function of the program may send requests itself.
task<header_list> make_headers(client::state& client, const request& request, const route& way,
                               std::string if_match);

// Sets a transfer up for a hop, with its headers.
void set_up(transfer& hop, const request& request, const route& way, const byte_range& range,
            const header_list& headers);

// Requests to a host that has answered over HTTP/2 wait for a connection that is being made, and
// share it. Those to others would wait for an answer over the first one, for nothing.
void share_connection(client::state& client, transfer& hop, const origin& host);

// Notes whether that host has answered over HTTP/2.
void record_version(client::state& client, const transfer& ended, const origin& host);

// The addresses of a host, or why it has none. Neither, if nobody but a proxy looks them up.
struct found_host {
  std::string addresses;
  std::optional<failed_attempt> failure;
};

// Looks up the host of a hop: before the hop has a permit, so that a name server that is silent
// holds up no other host.
task<found_host> look_up(const client::state& client, const route& way);

// Has a hop use them.
void set_addresses(const client::state& client, transfer& hop, const route& way,
                   const std::string& addresses);

// Whether a transfer that is over leads to another hop, to where `way` says then. Sets `refused` if
// it would, but may not.
bool follows_redirect(const client::state& client, const request& request, const transfer& ended,
                      route& way, std::optional<failed_attempt>& refused);

// Says where a failure was, if that is not where the request went at first.
void name_hop(const route& way, failed_attempt& failure);

}  // namespace lade::io::http
