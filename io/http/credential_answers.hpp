// Parses the credentials that metadata services and the Security Token Service return.

#pragma once

#include <lade/io/http/s3_credentials.hpp>

#include <optional>
#include <string_view>

namespace lade::io::http {

// Parses a time such as "2026-01-31T23:59:59Z", optionally with fractions of seconds or an offset
// (RFC 3339, section 5.6). Returns nothing for other texts, and time::max() for times beyond the
// clock's range.
std::optional<s3_credentials::time> parse_expiration(std::string_view text) noexcept;

// Parses the JSON object of container and instance metadata: AccessKeyId, SecretAccessKey, and
// optionally Token and Expiration. `doing`: the operation, for errors, which show neither key nor
// token. Both functions throw error(invalid_data).
s3_credentials parse_credentials_json(std::string_view text, std::string_view doing);

// Parses the XML of AssumeRoleWithWebIdentity.
s3_credentials parse_credentials_xml(std::string_view text, std::string_view doing);

}  // namespace lade::io::http
