// URLs as names of objects.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lade {

// The scheme of a URL, "https" of "https://host/a", in the case that it is written in; empty for
// names without one, such as paths.
std::string_view scheme_of(std::string_view name) noexcept;

// The name as errors, traces, statistics and states show it. Of a URL, the user information and the
// fragment are left out, and so are the values of query parameters, "token=...", but for those that
// are known to name objects or to count (prefix, versionId, partNumber and the like). So no
// password, token or signature is shown. Other names are returned as they are. So are values that
// begin with ".../": the name was shown before, and a path was appended to it.
//
// In doubt it hides too much. A password should have its '/', '?', '#' and '@' encoded; where
// "user:" or "host:8080" is followed by one of them and by an '@' behind it, all up to the last '@'
// is taken for user information, "https://...@host/a", and the rest for a query if there was a '?'
// or '#' before: "https://...".
std::string without_secrets(std::string_view name);

// The URL as it names the object, however often it is signed: without the parameters of a signature
// in its query, all others as they are. So caches know the object again. Signatures are those of
// Amazon S3 and Google Cloud Storage (X-Amz-Signature, X-Goog-Signature, or Signature with
// AWSAccessKeyId or GoogleAccessId, each with its date, expiry, scope and token), of CloudFront
// (Signature with Key-Pair-Id) and of Azure (sig with sv, and se or si). Where a URL has no whole
// signature of one of these kinds, as one with "Expires" or "sig" alone, nothing is left out.
std::string without_signature(std::string_view url);

// The bytes that percent-encoded text stands for (RFC 3986, section 2.1): "a b" of "a%20b". Nothing
// if two hexadecimal digits do not follow each "%".
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace lade
