#include <lade/io/http/client.hpp>

namespace lade::io::http {

void add(metrics& into, const client_statistics& of, const metric_labels& labels) {
  auto count = [&](const char* name, const char* help, std::uint64_t value) {
    into.add(std::string("lade_http_") + name, metric_type::counter, help,
             static_cast<double>(value), labels);
  };
  count("requests_total", "Attempts, redirects included.", of.requests);
  count("retries_total", "Attempts after a first one that failed.", of.retries);
  count("failures_total", "Requests whose last attempt failed.", of.failures);
  count("received_bytes_total", "Bytes of bodies that were received.", of.bytes_in);
  count("sent_bytes_total", "Bytes of bodies that were sent.", of.bytes_out);
  count("connections_total", "Connections that were made.", of.connections);
  count("verified_total", "Bodies that were compared with a checksum.", of.verified);
}

}  // namespace lade::io::http
