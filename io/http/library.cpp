#include <lade/io/http/library.hpp>

#include <curl/curl.h>

namespace lade::io::http {

std::string describe() { return curl_version(); }

}  // namespace lade::io::http
