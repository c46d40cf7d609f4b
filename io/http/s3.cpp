#include "ranges.hpp"
#include "s3_listing.hpp"
#include "s3_state.hpp"
#include "sigv4.hpp"

#include <lade/error.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/printable.hpp>
#include <lade/url.hpp>

#include <set>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

// Requests the checksum of the whole object, which stores return only on request.
static void request_checksum(request& request) {
  request.headers.emplace_back("x-amz-checksum-mode", "ENABLED");
}

s3_store::s3_store(const s3_options& options, client requests, s3_credentials_function credentials)
    : state_(std::make_shared<const state>(options, std::move(requests), std::move(credentials))) {}

// Gets an object, or a part of it.
static task<response> get_s3_object(std::shared_ptr<const s3_store::state> store, std::string url,
                                    byte_range range) {
  auto request = co_await make_s3_request(store, "GET", std::move(url));
  request.range = range;
  if (range.is_all()) request_checksum(request);
  co_return co_await store->requests.send(std::move(request));
}

static task<response> request_s3_object(std::shared_ptr<const s3_store::state> store,
                                        std::string_view method, std::string url,
                                        buffer content = {}) {
  auto request = co_await make_s3_request(store, method, std::move(url), {}, std::move(content));
  co_return co_await store->requests.send(std::move(request));
}

task<response> s3_store::get(std::string url, byte_range range) const {
  return get_s3_object(state_, std::move(url), range);
}

task<response> s3_store::head(std::string url) const {
  return request_s3_object(state_, "HEAD", std::move(url));
}

task<response> s3_store::put(std::string url, buffer content) const {
  return request_s3_object(state_, "PUT", std::move(url), std::move(content));
}

task<response> s3_store::remove(std::string url) const {
  return request_s3_object(state_, "DELETE", std::move(url));
}

static task<buffer> read_s3_object(std::shared_ptr<const s3_store::state> store, std::string url) {
  auto got = co_await get_s3_object(std::move(store), std::move(url), {});
  co_return got.body();
}

static task<object_part> read_s3_part(std::shared_ptr<const s3_store::state> store, std::string url,
                                      byte_range part, std::string etag) {
  auto request = co_await make_s3_request(store, "GET", std::move(url));
  if (part.offset == 0) request_checksum(request);
  request.range = part;
  request.if_match = with_quotes(etag);
  co_return co_await store->requests.get_part(std::move(request));
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
  auto request = co_await make_s3_request(store, "GET", std::move(url));
  try {
    co_return co_await store->requests.open(std::move(request));
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
  auto request = co_await make_s3_request(store, "GET", std::move(url));
  if (options.offset == 0) request_checksum(request);
  auto chunks = store->requests.stream(std::move(request), options);
  while (auto* chunk = co_await chunks.next()) co_yield *chunk;
}

async_generator<buffer> s3_store::stream(std::string url, stream_options options) const {
  return stream_s3_object(state_, std::move(url), options);
}

static task<std::string> endpoint_of(std::shared_ptr<const s3_store::state> store) {
  auto location = co_await store->location();
  co_return location->endpoint();
}

task<std::string> s3_store::identity() const { return endpoint_of(state_); }

static std::string listing_query(const std::string& key_prefix, const std::string& next) {
  auto query =
      std::string("encoding-type=url&list-type=2&prefix=") + percent_encoded(key_prefix, false);
  if (!next.empty()) query = "continuation-token=" + percent_encoded(next, false) + "&" + query;
  return query;
}

// Checks the guarantees of store::list, on which checkpoints of listings rely.
static void require_listed(const std::string& key, const std::string& prefix,
                           const std::string& last_key, const std::string& doing) {
  if (!key.starts_with(prefix))
    throw error(errc::invalid_data, doing, fmt::format("the server lists {} too", printable(key)));
  if (!last_key.empty() && key <= last_key)
    throw error(errc::unsupported, doing,
                fmt::format("the server lists {} behind {}, in no order or twice", printable(key),
                            printable(last_key)));
}

static async_generator<object_info> list_s3_objects(std::shared_ptr<const s3_store::state> store,
                                                    std::string prefix) {
  const s3_name name(prefix);
  auto bucket = std::string(scheme_of(prefix)) + "://" + name.bucket + "/";
  const auto doing = "list " + without_secrets(prefix);
  std::string next;
  std::string last_key;
  std::set<std::string> pages;  // their tokens, to detect a loop
  do {
    auto request = co_await make_s3_listing_request(store, bucket, listing_query(name.key, next));
    auto answer = co_await store->requests.send(std::move(request));
    auto page = parse_listed_page(answer.body().text(), doing);
    for (auto& each : page.keys) {
      require_listed(each.key, name.key, last_key, doing);
      last_key = each.key;
      object_info listed(bucket + each.key, each.bytes, std::move(each.etag));
      co_yield listed;
    }
    if (!page.next.empty() && !pages.insert(page.next).second)
      throw error(errc::invalid_data, doing, "the server repeats a page");
    next = std::move(page.next);
  } while (!next.empty());
}

async_generator<object_info> s3_store::list(std::string prefix) const {
  return list_s3_objects(state_, std::move(prefix));
}

}  // namespace lade::io::http
