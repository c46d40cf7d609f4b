#include "credential_sources.hpp"

#include "credential_answers.hpp"
#include "origin.hpp"
#include "profile_file.hpp"
#include "settings.hpp"
#include "sigv4.hpp"

#include <lade/error.hpp>
#include <lade/io/http/client.hpp>
#include <lade/io/http/error.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

namespace lade::io::http {

static credential_search not_found(std::string reason) {
  return credential_search(std::move(reason));
}

task<credential_search> search_environment() {
  bool has_id = !first_set({"AWS_ACCESS_KEY_ID"}).empty();
  bool has_secret = !first_set({"AWS_SECRET_ACCESS_KEY"}).empty();
  if (has_id != has_secret)
    throw error(errc::invalid_argument, "find credentials in the environment",
                has_id ? "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not"
                       : "AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not");
  auto keys = s3_credentials_from_environment();
  if (!keys) co_return not_found("AWS_ACCESS_KEY_ID is not set");
  co_return credential_search(*std::move(keys));
}

// Reads a token from a file, without its line break.
static task<std::string> read_token(std::string path) {
  auto text = co_await read_settings(path);
  if (!text) throw error(errc::invalid_argument, "read " + path, "there is no such file");
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  co_return *std::move(text);
}

static std::string token_service() {
  auto endpoint = first_set({"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"});
  if (!endpoint.empty()) return endpoint;
  auto region = first_set({"AWS_REGION", "AWS_DEFAULT_REGION"});
  return "https://" + (region.empty() ? "sts.amazonaws.com" : amazon_host("sts", region)) + "/";
}

static buffer buffer_of(std::string_view text) {
  buffer made(text.size());
  std::memcpy(made.data(), text.data(), text.size());
  return made;
}

task<credential_search> search_web_identity() {
  auto path = first_set({"AWS_WEB_IDENTITY_TOKEN_FILE"});
  auto role = first_set({"AWS_ROLE_ARN"});
  if (path.empty()) co_return not_found("AWS_WEB_IDENTITY_TOKEN_FILE is not set");
  if (role.empty()) co_return not_found("AWS_ROLE_ARN is not set");
  auto session = first_set({"AWS_ROLE_SESSION_NAME"});
  auto token = co_await read_token(path);
  request request("POST", token_service());
  request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
  request.body = buffer_of(fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&"
      "WebIdentityToken={}",
      percent_encoded(role, false), percent_encoded(session.empty() ? "lade" : session, false),
      percent_encoded(token, false)));
  request.may_repeat = true;
  auto doing =
      fmt::format("get credentials of role {} from {}", role, without_secrets(request.url()));
  client web({.connect_timeout = std::chrono::seconds(5),
              .timeout = std::chrono::seconds(10),
              .max_bytes = 1 << 20});
  auto answer = co_await web.send(std::move(request));
  co_return credential_search(parse_credentials_xml(answer.body().text(), doing));
}

// The reason why a profile cannot be used, if it needs more than its keys; else empty.
static std::string need_of(const s3_profile& profile) {
  for (auto* property : {"role_arn", "source_profile", "credential_source", "credential_process",
                         "sso_session", "sso_start_url", "login_session"})
    if (!profile.value(property).empty()) return property;
  return {};
}

task<credential_search> search_profile(std::string name) {
  auto profile = co_await s3_profile::load(std::move(name));
  if (!profile.exists())
    co_return not_found(
        fmt::format("there is no profile {} in {}", profile.name(), profile.places()));
  auto doing = "get credentials of profile " + profile.name();
  auto id = profile.value("aws_access_key_id");
  auto secret = profile.value("aws_secret_access_key");
  auto need = need_of(profile);
  if (id.empty() && secret.empty() && !need.empty())
    throw error(errc::unsupported, doing,
                fmt::format("it has {}; only profiles with aws_access_key_id are supported", need));
  if (id.empty() && secret.empty())
    co_return not_found(fmt::format("profile {} has no aws_access_key_id", profile.name()));
  if (id.empty() || secret.empty())
    throw error(
        errc::invalid_argument, doing,
        std::string("it has no ") + (id.empty() ? "aws_access_key_id" : "aws_secret_access_key"));
  co_return credential_search(s3_credentials(id, secret, profile.value("aws_session_token")));
}

// A client for services on the machine: without a proxy, and with short timeouts, since they answer
// at once or never.
static client metadata_client() {
  client_options options;
  options.retry.attempts = 3;
  options.connect_timeout = std::chrono::seconds(1);
  options.timeout = std::chrono::seconds(2);
  options.max_bytes = 1 << 20;
  options.redirects = 0;
  options.no_proxy = "*";
  return client(options);
}

// Whether a container's token may be sent to this host without encryption.
static bool is_metadata_host(const std::string& host) noexcept {
  constexpr std::array<std::string_view, 5> known{"169.254.170.2", "169.254.170.23",
                                                  "[fd00:ec2::23]", "[::1]", "localhost"};
  bool is_loopback =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
  return is_loopback || std::ranges::find(known, host) != known.end();
}

// The URL of the container's credentials; empty if none is configured.
static std::string container_url() {
  auto path = first_set({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"});
  if (!path.empty()) return "http://169.254.170.2" + (path.starts_with('/') ? path : "/" + path);
  auto url = first_set({"AWS_CONTAINER_CREDENTIALS_FULL_URI"});
  if (url.empty()) return {};
  const origin address(url);
  if (address.scheme != "https" && !is_metadata_host(address.host))
    throw error(errc::invalid_argument, "get credentials from " + without_secrets(url),
                "over http, only loopback and metadata addresses may be asked");
  return url;
}

task<credential_search> search_container() {
  auto url = container_url();
  if (url.empty())
    co_return not_found(
        "neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI is "
        "set");
  request request("GET", url);
  auto token = first_set({"AWS_CONTAINER_AUTHORIZATION_TOKEN"});
  auto path = first_set({"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"});
  if (!path.empty()) token = co_await read_token(path);
  if (!token.empty()) request.headers.emplace_back("Authorization", token);
  auto answer = co_await metadata_client().send(std::move(request));
  auto doing = "get credentials from " + without_secrets(url);
  co_return credential_search(parse_credentials_json(answer.body().text(), doing));
}

static std::string instance_service() {
  auto endpoint = first_set({"AWS_EC2_METADATA_SERVICE_ENDPOINT"});
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (!endpoint.empty()) return endpoint;
  auto mode = first_set({"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"});
  return mode == "IPv6" || mode == "ipv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
}

static task<std::string> get_metadata(client web, std::string url, std::string token) {
  request request("GET", std::move(url));
  request.headers.emplace_back("x-aws-ec2-metadata-token", token);
  auto answer = co_await web.send(std::move(request));
  co_return std::string(answer.body().text());
}

// Gets the token for further requests, and then the credentials. The request for the token is not
// retried: without such a service, nothing answers.
static task<credential_search> get_credentials_of_instance(client web, std::string service) {
  request request("PUT", service + "/latest/api/token");
  request.headers.emplace_back("x-aws-ec2-metadata-token-ttl-seconds", "21600");
  request.may_repeat = false;
  std::string token;
  try {
    auto answer = co_await web.send(std::move(request));
    token = answer.body().text();
  } catch (const error& failure) {
    if (failure.code() == errc::stopped) throw;
    co_return not_found(failure.what());
  }
  auto roles = service + "/latest/meta-data/iam/security-credentials/";
  std::string role;
  try {
    role = co_await get_metadata(web, roles, token);
  } catch (const error& failure) {
    if (failure.code() != status_code(404)) throw;
    co_return not_found("the instance has no role");
  }
  role = role.substr(0, role.find_first_of("\r\n"));
  if (role.empty()) co_return not_found("the instance has no role");
  auto url = roles + percent_encoded(role, false);
  auto text = co_await get_metadata(web, url, token);
  co_return credential_search(parse_credentials_json(text, "get credentials from " + url));
}

task<credential_search> search_instance() {
  auto disabled = first_set({"AWS_EC2_METADATA_DISABLED"});
  if (disabled == "true" || disabled == "TRUE" || disabled == "True")
    co_return not_found("AWS_EC2_METADATA_DISABLED is set");
  co_return co_await get_credentials_of_instance(metadata_client(), instance_service());
}

}  // namespace lade::io::http
