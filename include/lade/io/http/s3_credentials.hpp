// Credentials for object stores, and the sources of credentials.

#pragma once

#include <lade/task.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lade::io::http {

// The keys that sign requests. All of its strings are secrets: lade never prints them.
class s3_credentials {
 public:
  using time = std::chrono::system_clock::time_point;

  s3_credentials(std::string access_key, std::string secret_key, std::string session_token = {},
                 time expires = time::max())
      : access_key_(std::move(access_key)),
        secret_key_(std::move(secret_key)),
        session_token_(std::move(session_token)),
        expires_(expires) {}

  const std::string& access_key() const noexcept { return access_key_; }
  const std::string& secret_key() const noexcept { return secret_key_; }
  const std::string& session_token() const noexcept { return session_token_; }
  time expires() const noexcept { return expires_; }

 private:
  std::string access_key_;
  std::string secret_key_;
  std::string session_token_;
  time expires_;
};

// Returns credentials for subsequent requests. A store makes one call at a time: before its first
// request, from 5 minutes before the credentials expire, and after a response that reports expired
// credentials. Until they expire, other requests use the old credentials, even if the call fails.
// Any thread may call it; the task requires a runtime.
using s3_credentials_function = std::function<task<s3_credentials>()>;

// Returns AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment;
// nullopt unless the first two are set.
std::optional<s3_credentials> s3_credentials_from_environment();

// The first of these sources that has credentials, in the order of Amazon's SDKs:
//
//   1. the environment          s3_environment_credentials
//   2. web identity             s3_web_identity_credentials
//   3. profile files            s3_profile_credentials
//   4. container metadata       s3_container_credentials
//   5. instance metadata        s3_instance_credentials
//
// If a configured source fails, the error is thrown; the next source is not tried. If no source has
// credentials, the error names each source with its reason.
s3_credentials_function s3_default_credentials();

// The single sources. Each call reads the environment, files and servers again, and throws `error`
// naming the missing setting. Errors never contain a key or a token.

// As s3_credentials_from_environment. Throws error(invalid_argument) if only one of the keys is
// set.
s3_credentials_function s3_environment_credentials();

// Exchanges the token in the file AWS_WEB_IDENTITY_TOKEN_FILE for credentials of the role
// AWS_ROLE_ARN, as session AWS_ROLE_SESSION_NAME ("lade"), at the Security Token Service
// (AssumeRoleWithWebIdentity, version 2011-06-15): AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL, or
// Amazon's of AWS_REGION or AWS_DEFAULT_REGION. This is how service accounts of Kubernetes get
// credentials.
s3_credentials_function s3_web_identity_credentials();

// The keys of a profile in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE
// (~/.aws/config); the first has precedence. `profile`: if empty, AWS_PROFILE, or else "default".
// Throws error(unsupported) for a profile without keys that assumes a role, uses single sign-on
// (sso_...), or runs a program (credential_process). If such a profile has keys, the keys are used.
s3_credentials_function s3_profile_credentials(std::string_view profile = {});

// The response of AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, a path at 169.254.170.2, or of
// AWS_CONTAINER_CREDENTIALS_FULL_URI. The header Authorization is the content of
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, or AWS_CONTAINER_AUTHORIZATION_TOKEN. Over http, only
// loopback addresses, 169.254.170.2, 169.254.170.23 and fd00:ec2::23 are allowed.
s3_credentials_function s3_container_credentials();

// The role of the instance, by version 2 of its metadata service at 169.254.169.254 or
// AWS_EC2_METADATA_SERVICE_ENDPOINT. Waits at most 2 seconds for the first response. Not queried if
// AWS_EC2_METADATA_DISABLED is "true".
s3_credentials_function s3_instance_credentials();

}  // namespace lade::io::http
