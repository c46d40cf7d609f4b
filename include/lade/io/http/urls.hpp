// Names that are URLs. Including this header in a file of the program makes io::read, io::open,
// io::stream and io::files take them:
//
//   #include <lade/io/http/urls.hpp>
//
//   lade::from(std::vector<lade::sample>{lade::sample("https://example.com/a.jpg"), ...})
//       | lade::map(lade::io::read)
//
// http and https are read by a client with default options; s3 and gs with credentials, region and
// endpoint of the environment (see s3.hpp). A program that wants others mounts a store of its own:
//
//   lade::io::mount("s3://", std::make_shared<lade::io::http::s3_store>(...));

#pragma once

#include <lade/io/http/client.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/io/store.hpp>

#include <memory>

namespace lade::io::http {

// A store of web objects, for mount(): a client with other options than the default, for example
// mount("https://data.example.com/", web_store(web)).
std::shared_ptr<const store> web_store(client requests);

// Mounts default stores at http://, https://, s3:// and gs://, where none is mounted yet.
bool mount_defaults();

inline const bool defaults_are_mounted = mount_defaults();

}  // namespace lade::io::http
