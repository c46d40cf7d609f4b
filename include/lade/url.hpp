// URLs as names of objects.

#pragma once

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

}  // namespace lade
