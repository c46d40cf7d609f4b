// Parses the responses of object stores to ListObjectsV2.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io::http {

struct listed_key {
  std::string key;
  std::uint64_t bytes = 0;
  std::string etag;  // without quotes
};

struct listed_page {
  std::vector<listed_key> keys;
  std::string next;  // continues the listing; empty at its end
};

// An entity tag without its quotes.
std::string without_quotes(std::string tag);

// Parses the XML of a response to a request with encoding-type=url. Throws error(invalid_data) with
// `doing` and the reason. (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html)
listed_page parse_listed_page(std::string_view xml, std::string doing);

}  // namespace lade::io::http
