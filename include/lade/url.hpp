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
// fragment are left out, and so are the values of query parameters, "token=...", but for short
// numbers and for what only names objects (prefix, versionId and the like). So no password, token
// or signature is shown. Other names are returned as they are.
std::string without_secrets(std::string_view name);

// The bytes that percent-encoded text stands for (RFC 3986, section 2.1): "a b" of "a%20b". Nothing
// if two hexadecimal digits do not follow each "%".
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace lade
