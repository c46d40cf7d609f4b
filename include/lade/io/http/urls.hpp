// Names that are URLs. Including this header in a file of the program makes io::read, io::open,
// io::stream and io::files take them:
//
//   #include <lade/io/http/urls.hpp>
//
//   lade::from(std::vector<lade::sample>{lade::sample("https://example.com/a.jpg"), ...})
//       | lade::map(lade::io::read)

#pragma once

#include <lade/io/http/client.hpp>
#include <lade/io/store.hpp>

#include <memory>

namespace lade::io::http {

// A store of web objects, for mount(): a client with other options than the default, for example
// mount("https://data.example.com/", web_store(web)).
std::shared_ptr<const store> web_store(client requests);

// Mounts a default client at http:// and https://, where no store is mounted yet.
bool mount_defaults();

inline const bool defaults_are_mounted = mount_defaults();

}  // namespace lade::io::http
