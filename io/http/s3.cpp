#include "origin.hpp"
#include "parts.hpp"
#include "s3_listing.hpp"
#include "sigv4.hpp"

#include <lade/error.hpp>
#include <lade/event.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/url.hpp>

#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

namespace lade::io::http {

static std::string first_set(std::initializer_list<const char*> names) {
  for (auto* name : names)
    if (auto* value = std::getenv(name); value && *value) return value;
  return {};
}

std::optional<s3_credentials> s3_credentials_from_environment() {
  auto id = first_set({"AWS_ACCESS_KEY_ID"});
  auto secret = first_set({"AWS_SECRET_ACCESS_KEY"});
  if (id.empty() || secret.empty()) return std::nullopt;
  return s3_credentials(std::move(id), std::move(secret), first_set({"AWS_SESSION_TOKEN"}));
}

static task<s3_credentials> credentials_of_environment() {
  auto found = s3_credentials_from_environment();
  if (!found)
    throw error(errc::invalid_argument, "find credentials for S3",
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set");
  co_return *std::move(found);
}

// "s3://bucket/key".
struct s3_name {
  std::string bucket;
  std::string key;

  explicit s3_name(std::string_view url) {
    auto scheme = scheme_of(url);
    auto rest = url.substr(scheme.empty() ? 0 : scheme.size() + 3);
    bucket = rest.substr(0, rest.find('/'));
    key = rest.substr(std::min(rest.size(), bucket.size() + 1));
    if (scheme.empty() || bucket.empty() || bucket.find_first_of("?#@:%") != std::string::npos)
      throw error(errc::invalid_argument, "open " + std::string(url), "no s3://bucket/key");
  }
};

struct s3_store::state {
  state(const s3_options& given, client made, s3_credentials_function from)
      : path_style(given.path_style),
        is_anonymous(given.anonymous),
        requester_pays(given.requester_pays),
        requests(std::move(made)),
        region(given.region.empty() ? first_set({"AWS_REGION", "AWS_DEFAULT_REGION"})
                                    : std::string(given.region)),
        endpoint(given.endpoint.empty() ? first_set({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
                                        : std::string(given.endpoint)),
        credentials(from ? std::move(from) : credentials_of_environment) {
    if (region.empty()) region = "us-east-1";
    is_amazons = endpoint.empty();
    if (is_amazons) endpoint = "https://s3." + region + ".amazonaws.com";
    while (endpoint.ends_with('/')) endpoint.pop_back();
    remove_default_port();
    signer.emplace(region);
  }

  // The URL of an object by which requests are made, and signed.
  std::string http_url(const s3_name& name, const std::string& query = {}) const;

  // Credentials that are valid for a while.
  task<s3_credentials> current() const;

  // A signature covers the host as libcurl sends it, which is without the scheme's own port.
  void remove_default_port() {
    origin where(endpoint);
    auto own = where.scheme == "https" ? std::string(":443") : std::string(":80");
    if (endpoint.ends_with(own)) endpoint.resize(endpoint.size() - own.size());
  }

  std::optional<bool> path_style;
  bool is_anonymous;
  bool requester_pays;
  client requests;
  std::string region;
  std::string endpoint;
  bool is_amazons = false;
  std::optional<s3_signer> signer;
  s3_credentials_function credentials;

  mutable std::mutex mutex;
  mutable std::optional<s3_credentials> kept;      // guarded by mutex
  mutable std::shared_ptr<event> being_refreshed;  // guarded by mutex; null: by nobody
};

std::string s3_store::state::http_url(const s3_name& name, const std::string& query) const {
  bool has_dot = name.bucket.find('.') != std::string::npos;
  bool in_path = path_style.value_or(!is_amazons || has_dot);
  auto key = percent_encoded(name.key, true);
  auto suffix = query.empty() ? "" : "?" + query;
  if (in_path) return endpoint + "/" + name.bucket + "/" + key + suffix;
  auto host = endpoint.find("://") + 3;
  return endpoint.substr(0, host) + name.bucket + "." + endpoint.substr(host) + "/" + key + suffix;
}

// One of those who need credentials gets them for all; if it fails, another tries.
task<s3_credentials> s3_store::state::current() const {
  constexpr auto margin = std::chrono::minutes(5);
  while (true) {
    std::shared_ptr<event> others;
    std::shared_ptr<event> own;
    {
      std::lock_guard lock(mutex);
      if (kept && std::chrono::system_clock::now() + margin < kept->expires()) co_return *kept;
      others = being_refreshed;
      if (!others) own = being_refreshed = std::make_shared<event>();
    }
    if (others) {
      co_await *others;
      continue;
    }
    std::optional<s3_credentials> fresh;
    std::exception_ptr failure;
    try {
      fresh = co_await credentials();
    } catch (...) {
      failure = std::current_exception();
    }
    {
      std::lock_guard lock(mutex);
      if (fresh) kept = fresh;
      being_refreshed.reset();
    }
    own->set();
    if (failure) std::rethrow_exception(failure);
    co_return *std::move(fresh);
  }
}

// A request that is signed anew for each attempt.
static task<request> make_s3_request(std::shared_ptr<const s3_store::state> store,
                                     std::string_view method, std::string url,
                                     std::string query = {}, buffer body = {}) {
  request made(method, store->http_url(s3_name(url), query));
  made.body = std::move(body);
  if (store->requester_pays) made.headers.emplace_back("x-amz-request-payer", "requester");
  if (store->is_anonymous) co_return made;
  auto keys = co_await store->current();
  auto hash = sha256_text(made.body.text());
  made.sign = [store, keys = std::move(keys), hash = std::move(hash)](const request& what,
                                                                      http::header_list& headers) {
    auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    store->signer->sign(what.method(), what.url(), headers, keys, hash, now);
  };
  co_return made;
}

static task<response> send_to_s3(std::shared_ptr<const s3_store::state> store,
                                 std::string_view method, std::string url, byte_range range = {},
                                 buffer body = {}) {
  auto what = co_await make_s3_request(store, method, std::move(url), {}, std::move(body));
  what.range = range;
  co_return co_await store->requests.send(std::move(what));
}

s3_store::s3_store(const s3_options& options, client requests, s3_credentials_function credentials)
    : state_(std::make_shared<const state>(options, std::move(requests), std::move(credentials))) {}

task<response> s3_store::get(std::string url, byte_range range) const {
  return send_to_s3(state_, "GET", std::move(url), range);
}

task<response> s3_store::head(std::string url) const {
  return send_to_s3(state_, "HEAD", std::move(url));
}

task<response> s3_store::put(std::string url, buffer content) const {
  return send_to_s3(state_, "PUT", std::move(url), {}, std::move(content));
}

task<response> s3_store::remove(std::string url) const {
  return send_to_s3(state_, "DELETE", std::move(url));
}

static task<buffer> read_s3_object(std::shared_ptr<const s3_store::state> store, std::string url) {
  auto what = co_await make_s3_request(store, "GET", std::move(url));
  co_return co_await get_in_parts(store->requests, std::move(what));
}

static task<object_part> read_s3_part(std::shared_ptr<const s3_store::state> store, std::string url,
                                      byte_range part, std::string etag) {
  auto what = co_await make_s3_request(store, "GET", std::move(url));
  co_return co_await get_part(store->requests, std::move(what), part, std::move(etag));
}

task<buffer> s3_store::read(std::string url) const {
  return read_s3_object(state_, std::move(url));
}

task<object_part> s3_store::read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                                      std::string etag) const {
  return read_s3_part(state_, std::move(url), {offset, bytes}, std::move(etag));
}

static task<std::shared_ptr<const byte_reader>> open_s3_object(
    std::shared_ptr<const s3_store::state> store, std::string url, bool may_be_absent) {
  auto what = co_await make_s3_request(store, "GET", std::move(url));
  try {
    co_return co_await store->requests.open(std::move(what));
  } catch (const error& failure) {
    if (!may_be_absent || failure.code() != status_code(404)) throw;
  }
  co_return nullptr;
}

task<std::shared_ptr<const byte_reader>> s3_store::open(std::string url, bool may_be_absent) const {
  return open_s3_object(state_, std::move(url), may_be_absent);
}

static async_generator<buffer> stream_s3_object(std::shared_ptr<const s3_store::state> store,
                                                std::string url, stream_options options) {
  auto what = co_await make_s3_request(store, "GET", std::move(url));
  auto chunks = store->requests.stream(std::move(what), options);
  while (auto* chunk = co_await chunks.next()) co_yield *chunk;
}

async_generator<buffer> s3_store::stream(std::string url, stream_options options) const {
  return stream_s3_object(state_, std::move(url), options);
}

static std::string listing_query(const std::string& key_prefix, const std::string& next) {
  auto query =
      std::string("encoding-type=url&list-type=2&prefix=") + percent_encoded(key_prefix, false);
  if (!next.empty()) query = "continuation-token=" + percent_encoded(next, false) + "&" + query;
  return query;
}

static async_generator<object_info> list_s3_objects(std::shared_ptr<const s3_store::state> store,
                                                    std::string prefix) {
  const s3_name name(prefix);
  auto bucket = std::string(scheme_of(prefix)) + "://" + name.bucket + "/";
  std::string next;
  do {
    auto what = co_await make_s3_request(store, "GET", bucket, listing_query(name.key, next));
    auto answer = co_await store->requests.send(std::move(what));
    auto page = parse_listed_page(answer.body().text());
    for (auto& each : page.keys) {
      object_info listed(bucket + each.key, each.bytes, std::move(each.etag));
      co_yield listed;
    }
    if (!page.next.empty() && page.next == next)
      throw error(errc::invalid_data, "list " + prefix, "the server repeats a page");
    next = std::move(page.next);
  } while (!next.empty());
}

async_generator<object_info> s3_store::list(std::string prefix) const {
  return list_s3_objects(state_, std::move(prefix));
}

}  // namespace lade::io::http
