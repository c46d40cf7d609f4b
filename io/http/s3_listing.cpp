#include "s3_listing.hpp"

#include "xml.hpp"

#include <lade/url.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace lade::io::http {

// Decodes a key in form encoding: a space may be a plus.
static std::string decoded_key(const xml_text& xml, std::string text) {
  std::ranges::replace(text, '+', ' ');
  auto decoded = percent_decoded(text);
  if (!decoded) xml.refuse("a key that is not encoded as requested");
  return *std::move(decoded);
}

std::string without_quotes(std::string tag) {
  bool is_quoted = tag.size() >= 2 && tag.front() == '"' && tag.back() == '"';
  return is_quoted ? tag.substr(1, tag.size() - 2) : tag;
}

static listed_key parse_listed_key(const xml_text& xml, bool is_encoded) {
  auto key = xml.find("Key");
  auto size = xml.find("Size");
  if (!key || !size) xml.refuse("an object without a key or a size");
  listed_key listed;
  listed.key = is_encoded ? decoded_key(xml, key->plain()) : key->plain();
  auto digits = size->plain();
  auto* end = digits.data() + digits.size();
  auto [last, failure] = std::from_chars(digits.data(), end, listed.bytes);
  if (failure != std::errc() || last != end) xml.refuse("a size that is no number");
  listed.etag = without_quotes(xml.value("ETag"));
  return listed;
}

listed_page parse_listed_page(std::string_view xml, std::string doing) {
  auto listing = xml_text(xml, std::move(doing)).require("ListBucketResult");
  listed_page page;
  bool is_encoded = listing.value("EncodingType") == "url";
  auto is_truncated = listing.value("IsTruncated");
  if (is_truncated != "true" && is_truncated != "false")
    listing.refuse("no word of whether it is all");
  if (is_truncated == "true") {
    page.next = listing.value("NextContinuationToken");
    if (page.next.empty()) listing.refuse("it is truncated, and has no continuation token");
  }
  while (auto contents = listing.take("Contents"))
    page.keys.push_back(parse_listed_key(*contents, is_encoded));
  return page;
}

}  // namespace lade::io::http
