// URLs as names of objects: their schemes, secrets and signatures.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lade {

// The scheme of a URL, "https" of "https://host/a", in its original case. Empty for names without a
// scheme, such as paths.
std::string_view scheme_of(std::string_view name) noexcept;

// The name as errors, traces, statistics and checkpoints show it, so that they show no password,
// token or signature. Removed from a URL are the user information, the fragment, and the values of
// query parameters: "token=...".
//
// Exceptions: values of parameters that are known to name objects or to count remain, such as
// prefix, versionId and partNumber. Values that begin with ".../" remain: the name was shown
// before, and a path was appended to it. Names that are not URLs are returned unchanged.
//
// In doubt the function hides too much. The '/', '?', '#' and '@' of a password should be encoded.
// If "user:" or "host:8080" is followed by one of these characters and a later '@', everything up
// to the last '@' counts as user information: "https://...@host/a". If a '?' or '#' is before that
// '@', the rest counts as a query: "https://...".
std::string without_secrets(std::string_view name);

// The URL without the parameters of its signature, so that a cache recognises an object whose URL
// is signed anew. All other parameters are kept. Recognised signatures:
//
// - Amazon S3 and Google Cloud Storage: X-Amz-Signature, X-Goog-Signature, or Signature with
//   AWSAccessKeyId or GoogleAccessId, each with its date, expiry, scope and token
// - CloudFront: Signature with Key-Pair-Id
// - Azure: sig with sv, and se or si
//
// A URL without a whole signature of such a kind, as with "Expires" or "sig" alone, is returned
// unchanged.
std::string without_signature(std::string_view url);

// Decodes percent-encoded text (RFC 3986, section 2.1): "a b" of "a%20b". Returns nothing if a "%"
// is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace lade
