// Default stores for URLs. If a file of the program includes this header, io::read, io::open,
// io::stream and io::files accept URLs:
//
//   #include <lade/io/http/urls.hpp>
//
//   lade::from(std::vector<lade::sample>{lade::sample("https://example.com/a.jpg"), ...})
//       | lade::map(lade::io::read)
//
// URLs of http and https are read by a client with default options. URLs of s3 and gs use the
// credentials, region and endpoint of the environment (see s3.hpp). For other options, mount a
// custom store:
//
//   lade::io::mount("s3://", std::make_shared<lade::io::http::s3_store>(...));

#pragma once

#include <lade/io/http/client.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/io/store.hpp>

#include <memory>

namespace lade::io::http {

// Returns a store of web objects for mount(). `requests`: a client with custom options, as in
// mount("https://data.example.com/", web_store(web)).
std::shared_ptr<const store> web_store(client requests);

// Mounts default stores at http://, https://, s3:// and gs://, except where a store is mounted.
bool mount_defaults();

inline const bool defaults_are_mounted = mount_defaults();

}  // namespace lade::io::http
