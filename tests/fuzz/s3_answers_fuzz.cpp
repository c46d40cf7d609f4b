// Reads any bytes as what object stores and services of credentials say.

#include "../../io/http/credential_answers.hpp"
#include "../../io/http/s3_listing.hpp"
#include "../../io/http/sigv4.hpp"

#include <lade/error.hpp>
#include <lade/url.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

// Errors are those of invalid data, and show nothing of the answer but what it names.
template <class F>
static void read_as(F parse) try {
  parse();
} catch (const lade::error& refused) {
  if (refused.code() != lade::errc::invalid_data) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lade::io::http;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as([&] { (void)parse_listed_page(text, "list"); });
  read_as([&] { (void)parse_credentials_xml(text, "read"); });
  read_as([&] { (void)parse_credentials_json(text, "read"); });
  (void)parse_expiration(text);
  if (lade::percent_decoded(percent_encoded(text, true)) != text) std::abort();
  return 0;
}
