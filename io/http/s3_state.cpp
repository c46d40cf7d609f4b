#include "s3_state.hpp"

#include "failures.hpp"
#include "origin.hpp"
#include "permit.hpp"
#include "profile_file.hpp"
#include "settings.hpp"

#include <lade/background.hpp>
#include <lade/error.hpp>
#include <lade/printable.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

s3_name::s3_name(std::string_view url) {
  auto scheme = scheme_of(url);
  auto rest = url.substr(scheme.empty() ? 0 : scheme.size() + 3);
  bucket = rest.substr(0, rest.find('/'));
  key = rest.substr(std::min(rest.size(), bucket.size() + 1));
  if (scheme.empty() || bucket.empty() || bucket.find_first_of("?#@:%") != std::string::npos)
    throw error(errc::invalid_argument, "open " + without_secrets(url), "no s3://bucket/key");
}

s3_location::s3_location(std::string region, std::string endpoint, std::optional<bool> path_style)
    : is_amazons_(endpoint.empty()),
      endpoint_(is_amazons_ ? "https://" + amazon_host("s3", region) : std::move(endpoint)),
      path_style_(path_style),
      signer_(std::move(region)) {
  while (endpoint_.ends_with('/')) endpoint_.pop_back();
  remove_default_port();
}

// Removes a default port: a signature covers the header Host, which libcurl sends without it.
void s3_location::remove_default_port() {
  const origin address(endpoint_);
  auto own = address.scheme == "https" ? std::string(":443") : std::string(":80");
  if (endpoint_.ends_with(own)) endpoint_.resize(endpoint_.size() - own.size());
}

std::string s3_location::http_url(const s3_name& name, const std::string& query) const {
  bool has_dot = name.bucket.find('.') != std::string::npos;
  bool in_path = path_style_.value_or(!is_amazons_ || has_dot);
  auto key = percent_encoded(name.key, true);
  auto suffix = query.empty() ? "" : "?" + query;
  if (in_path) return fmt::format("{}/{}/{}{}", endpoint_, name.bucket, key, suffix);
  auto host = endpoint_.find("://") + 3;
  return fmt::format("{}{}.{}/{}{}", endpoint_.substr(0, host), name.bucket, endpoint_.substr(host),
                     key, suffix);
}

// Returns the endpoint. Throws error(invalid_argument) naming its origin, `from`, if it is no URL
// of a server.
static std::string require_endpoint(const std::string& from, std::string endpoint) {
  std::string reason;
  try {
    (void)origin(endpoint);
  } catch (const error& failure) {
    reason = failure.what();
  }
  if (reason.empty() && endpoint.find_first_of("?#@") != std::string::npos)
    reason = without_secrets(endpoint) + " has a query, a fragment or user information";
  if (reason.empty()) return endpoint;
  throw error(errc::invalid_argument, "make an S3 store", fmt::format("{}: {}", from, reason));
}

static std::string require_region(std::string region) {
  bool is_name = std::ranges::all_of(
      region, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
  if (is_name) return region;
  throw error(errc::invalid_argument, "make an S3 store",
              fmt::format("'{}' is no name of a region", printable(region)));
}

static std::string find_endpoint(std::string_view value) {
  if (!value.empty()) return require_endpoint("endpoint", std::string(value));
  for (auto* variable : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    if (auto url = first_set({variable}); !url.empty())
      return require_endpoint(variable, std::move(url));
  return {};
}

static std::string endpoint_of(const s3_profile& profile) {
  auto url = profile.endpoint();
  if (url.empty()) return url;
  return require_endpoint("endpoint_url of profile " + profile.name(), std::move(url));
}

s3_store::state::state(const s3_options& options, client made, s3_credentials_function from)
    : region(require_region(options.region.empty() ? first_set({"AWS_REGION", "AWS_DEFAULT_REGION"})
                                                   : std::string(options.region))),
      endpoint(find_endpoint(options.endpoint)),
      path_style(options.path_style),
      is_anonymous(options.anonymous),
      requester_pays(options.requester_pays),
      requests(std::move(made)),
      credentials(
          std::make_shared<credential_cache>(from ? std::move(from) : s3_default_credentials())) {
  if (!region.empty() && !endpoint.empty()) set_location(region, endpoint);
}

std::shared_ptr<const s3_location> s3_store::state::known_location() const {
  std::lock_guard lock(mutex_);
  return location_;
}

void s3_store::state::set_location(std::string of_region, std::string at_endpoint) const {
  if (of_region.empty()) of_region = "us-east-1";
  auto made =
      std::make_shared<const s3_location>(std::move(of_region), std::move(at_endpoint), path_style);
  std::lock_guard lock(mutex_);
  location_ = std::move(made);
}

task<std::shared_ptr<const s3_location>> s3_store::state::location() const {
  if (auto known = known_location()) co_return known;
  co_await loading_.acquire();
  permit only(loading_);
  if (auto known = known_location()) co_return known;
  auto profile = co_await without_budget(s3_profile::load({}));
  set_location(region.empty() ? require_region(std::string(profile.value("region"))) : region,
               endpoint.empty() ? endpoint_of(profile) : endpoint);
  co_return known_location();
}

static task<> keep_credentials_fresh(std::shared_ptr<credential_cache> cache) {
  co_await cache->keep_fresh();
}

static task<> sign_s3_request(std::shared_ptr<const s3_store::state> store,
                              std::shared_ptr<const s3_location> location, std::string body_hash,
                              const request& request, http::header_list& headers) {
  auto keys = co_await store->credentials->current();
  if (keys.expires() != s3_credentials::time::max()) {
    auto& current = co_await this_context_reference();
    auto kept = store->credentials;
    start_background(current, kept.get(), "renew credentials",
                     [kept] { return keep_credentials_fresh(kept); });
  }
  auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  location->signer().sign(request.method(), request.url(), headers, keys, body_hash, now);
}

void require_s3_key(std::string_view doing, std::string_view url) {
  if (s3_name(url).key.empty())
    throw error(errc::invalid_argument, describe_request(doing, url), "no key after the bucket");
}

static task<request> make_signed_request(std::shared_ptr<const s3_store::state> store,
                                         std::string_view method, s3_name name, std::string query,
                                         buffer body) {
  auto location = co_await store->location();
  request made(method, location->http_url(name, query));
  made.body = std::move(body);
  made.may_repeat = true;
  if (store->requester_pays) made.headers.emplace_back("x-amz-request-payer", "requester");
  if (store->is_anonymous) co_return made;
  auto hash = sha256_text(made.body.text());
  made.sign = [store, location, hash](const request& request, http::header_list& headers) {
    return sign_s3_request(store, location, hash, request, headers);
  };
  if (method == "HEAD")
    made.renew = [store, was_renewed = std::make_shared<std::atomic<bool>>(false)](
                     std::string_view, request::time start) {
      return !was_renewed->exchange(true) && store->credentials->expire_if_old(start);
    };
  else
    made.renew = [store](std::string_view reason, request::time start) {
      bool is_expired = reason.find("ExpiredToken") != std::string_view::npos;
      if (is_expired) store->credentials->expire(start);
      return is_expired;
    };
  co_return made;
}

task<request> make_s3_request(std::shared_ptr<const s3_store::state> store, std::string_view method,
                              std::string url, std::string query, buffer body) {
  require_s3_key(method, url);
  return make_signed_request(std::move(store), method, s3_name(url), std::move(query),
                             std::move(body));
}

task<request> make_s3_listing_request(std::shared_ptr<const s3_store::state> store,
                                      std::string bucket_url, std::string query) {
  auto what = co_await make_signed_request(std::move(store), "GET", s3_name(bucket_url),
                                           std::move(query), {});
  what.max_bytes = most_answer_bytes;
  co_return what;
}

}  // namespace lade::io::http
