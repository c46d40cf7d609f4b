// What metadata services and the Security Token Service answer with: credentials.

#pragma once

#include <lade/io/http/s3_credentials.hpp>

#include <optional>
#include <string_view>

namespace lade::io::http {

// The time in an answer, "2026-01-31T23:59:59Z", with a fraction of seconds or an offset if need be
// (RFC 3339, section 5.6); nothing for other texts. Times that the clock cannot hold are
// time::max().
std::optional<s3_credentials::time> parse_expiration(std::string_view text) noexcept;

// The JSON object of container and instance metadata: AccessKeyId, SecretAccessKey, Token and
// Expiration, of which the last two may be missing. `doing`: what errors say was done, which show
// neither key nor token. Both throw error(invalid_data).
s3_credentials parse_credentials_json(std::string_view text, std::string_view doing);

// The XML of AssumeRoleWithWebIdentity.
s3_credentials parse_credentials_xml(std::string_view text, std::string_view doing);

}  // namespace lade::io::http
