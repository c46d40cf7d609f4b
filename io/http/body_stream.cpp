#include "attempt.hpp"
#include "hops.hpp"
#include "ranges.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/http/client.hpp>
#include <lade/sleep.hpp>
#include <lade/support/require.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

// A body that is delivered in chunks while it is received, over several attempts if need be.
struct streamed_body {
  std::shared_ptr<client::state> owner;
  request get_request;                             // its range is the rest of the body
  std::string etag = {};                           // of the delivered chunks: strong, or empty
  std::optional<std::uint64_t> object_bytes = {};  // of the whole object, if known
  bool has_started = false;                        // a chunk was delivered
  unsigned attempts = 0;                           // since the last byte
  std::chrono::steady_clock::time_point waits_since = {};  // for the first chunk of an attempt
  std::optional<object_checksum> checksum = {};            // of the whole object, if to be verified
};

// The consumer may take any time. So the stream has its own connection, without a time limit.
static void set_streaming(CURL* easy) {
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 0L);
}

// The failure of a response that is not the requested body; empty if it is.
static std::optional<failed_attempt> refusal_of(const streamed_body& body, const transfer& hop) {
  auto& range = body.get_request.range;
  auto status = hop.head.status;
  bool has_broken_off = hop.at() == transfer::stage::over && !hop.succeeded();
  if (has_broken_off && !hop.head.is_complete) return failure_of(hop);
  if (status == 412 && body.has_started) return changed_object();
  bool may_end = body.has_started && body.object_bytes.value_or(range.offset) == range.offset;
  if (may_end && ends_at(hop.head, range.offset)) return std::nullopt;
  if (status >= 300 || status < 200) return failure_of(hop);
  bool is_object = status == 200 || status == 203 || (status == 206 && !range.is_all());
  if (!is_object)
    return failed_attempt{.code = status_code(status),
                          .reason = status_code(status).message() + ", which is no object"};
  auto& tag = body.has_started ? body.etag : body.get_request.if_match;
  if (auto refused = refusal_of_entity(hop.head, tag, body.object_bytes)) return refused;
  if (!hop.misfits && (range.is_all() || part_bytes(hop.head, range))) return std::nullopt;
  return failed_attempt{
      .code = make_error_code(errc::invalid_data),
      .reason = fmt::format("the server did not send the part from byte {} on", range.offset)};
}

// Starts an attempt: runs `hop` up to the first byte of the body, or to its end. Returns the
// failure if that is not the requested body.
//
// An open stream holds no permit, since its consumer may wait for other requests.
static task<std::optional<failed_attempt>> begin_body(streamed_body& body,
                                                      std::optional<live_transfer>& hop,
                                                      lade::runtime& runtime) {
  route way(body.get_request);
  auto start = std::chrono::system_clock::now();
  std::optional<failed_attempt> refused;
  do {
    auto tag = body.has_started ? body.etag : body.get_request.if_match;
    auto headers = co_await make_headers(*body.owner, body.get_request, way, std::move(tag));
    start = std::chrono::system_clock::now();
    auto found = co_await look_up(*body.owner, way);
    refused = std::move(found.failure);
    if (refused) break;
    host_share host(*body.owner, way.at);
    co_await host.permits().acquire();
    permit one_of_host(host.permits());
    co_await body.owner->permits.acquire();
    permit one_of_all(body.owner->permits);
    hop.emplace(body.owner, runtime);
    if (!body.get_request.range.is_all()) (*hop)->expected = body.get_request.range;
    set_streaming((*hop)->handle());
    set_up(**hop, body.get_request, way, body.get_request.range, headers);
    set_addresses(*body.owner, **hop, way, found.addresses);
    co_await hop->step();
  } while ((*hop)->at() == transfer::stage::over &&
           follows_redirect(*body.owner, body.get_request, **hop, way, refused));
  if (!refused) refused = refusal_of(body, **hop);
  if (refused) refused->again = refused->again || is_renewed(body.get_request, *refused, start);
  if (refused) name_hop(way, *refused);
  co_return refused;
}

[[noreturn]] static void fail_stream(const streamed_body& body, const failed_attempt& failure) {
  ++body.owner->failures;
  auto& options = body.owner->settings.options;
  throw error(failure.code, "stream " + without_secrets(body.get_request.url()),
              fmt::format("{} (at byte {}, attempt {} of {})", failure.reason,
                          body.get_request.range.offset, body.attempts, options.retry.attempts));
}

// The size limit of the next chunk: `most`, or the rest of a body whose length is stated.
static std::size_t next_chunk_bytes(const transfer& body, std::uint64_t delivered,
                                    std::size_t most) {
  auto length = body.head.value("content-encoding").empty() ? body.head.length() : std::nullopt;
  if (!length || *length < delivered) return most;
  return static_cast<std::size_t>(std::min<std::uint64_t>(most, *length - delivered));
}

// Records the version and the length that a response states. A compressed body cannot be continued,
// since ranges count its encoded bytes.
static void take_head(streamed_body& body, const response_head& head) {
  if (body.has_started) return;
  auto& options = body.owner->settings.options;
  auto tag = head.value("etag");
  bool is_decoded = options.decompress && !head.value("content-encoding").empty();
  body.etag = is_strong(tag) && !is_decoded ? tag : "";
  body.object_bytes = is_decoded ? std::nullopt : object_bytes(head.headers);
  bool is_compared = options.verify_checksums && body.get_request.range.is_all() && !is_decoded;
  body.checksum = is_compared ? object_checksum::stated_by(head) : std::nullopt;
}

// Receives the next chunk; empty at the end.
static task<buffer> next_chunk(streamed_body& body, live_transfer& hop, std::size_t bytes) {
  auto chunk = co_await allocate(bytes);
  co_await body.owner->bytes.acquire(bytes);
  byte_share share(body.owner->bytes);
  share.add(bytes);
  hop->destination = chunk.bytes();
  hop->filled = 0;
  co_await hop.step();
  auto filled = chunk.slice(0, hop->filled);
  if (body.checksum && !filled.empty()) co_await update_checksum(*body.checksum, filled.bytes());
  co_return filled;
}

// Awaits work for a chunk within the deadline, which counts from `waits_since`.
template <class T>
static task<T> in_time(streamed_body& body, task<T> work) {
  return within_deadline(*body.owner, body.waits_since, std::move(work), "stream",
                         body.get_request.url());
}

// Throws if the delivered chunks do not have the checksum that the server states.
static void verify_stream(streamed_body& body) {
  if (!body.checksum) return;
  ++body.owner->verified;
  if (auto reason = body.checksum->mismatch(); !reason.empty())
    fail_stream(body, {.code = make_error_code(errc::invalid_data), .reason = std::move(reason)});
}

// The failure of a transfer that ended before the end of the body; empty if the body is complete.
static std::optional<failed_attempt> failure_of_end(const streamed_body& body,
                                                    const transfer& ended) {
  if (!ended.succeeded()) return failure_of(ended);
  auto offset = body.get_request.range.offset;
  if (body.object_bytes.value_or(0) <= offset) return std::nullopt;
  return failed_attempt{.code = make_error_code(errc::invalid_data),
                        .reason = fmt::format("the rest that the server sent lacks {} bytes",
                                              *body.object_bytes - offset),
                        .again = true};
}

// Pauses before the next attempt. Throws if there is none left.
static task<> recover(streamed_body& body, failed_attempt failure) {
  auto& options = body.owner->settings.options;
  bool can_continue = !body.has_started || !body.etag.empty();
  if (!can_continue) failure.reason += "; without a strong entity tag it cannot be continued";
  if (!failure.again || !can_continue || body.attempts >= options.retry.attempts)
    fail_stream(body, failure);
  ++body.owner->retries;
  co_await sleep(pause_before_next(options, failure, body.attempts));
}

static async_generator<buffer> stream_body(streamed_body body, std::size_t chunk_bytes) {
  body.waits_since = std::chrono::steady_clock::now();
  while (true) {
    auto current = co_await this_context();
    if (!current.runtime)
      throw error(errc::no_runtime, "stream " + without_secrets(body.get_request.url()));
    ++body.attempts;
    std::optional<live_transfer> hop;
    auto failure = co_await in_time(body, begin_body(body, hop, *current.runtime));
    auto& running = **hop;
    if (!failure) take_head(body, running.head);
    std::uint64_t delivered = 0;
    while (!failure && running.at() == transfer::stage::paused) {
      auto bytes = std::max(next_chunk_bytes(running, delivered, chunk_bytes), running.needed);
      auto receiving = next_chunk(body, *hop, bytes);
      if (delivered == 0) receiving = in_time(body, std::move(receiving));
      auto chunk = co_await std::move(receiving);
      if (chunk.empty()) continue;
      delivered += chunk.size();
      body.get_request.range.offset += chunk.size();
      body.has_started = true;
      body.attempts = 1;
      co_yield chunk;
    }
    running.filled = static_cast<std::size_t>(delivered);
    count(*body.owner, running);
    if (!failure) failure = failure_of_end(body, running);
    if (!failure) break;
    hop.reset();
    if (delivered > 0) body.waits_since = std::chrono::steady_clock::now();
    co_await in_time(body, recover(body, *std::move(failure)));
  }
  verify_stream(body);
}

async_generator<buffer> client::stream(std::string url, stream_options options) const {
  return stream(request("GET", std::move(url)), options);
}

async_generator<buffer> client::stream(request what, stream_options options) const {
  lade::support::require_count("stream " + without_secrets(what.url()), "chunk_bytes",
                               options.chunk_bytes, {.least = 1, .most = std::uint64_t{1} << 30});
  require_whole_get("stream", what);
  what.range = {options.offset, byte_range::to_end};
  return stream_body({.owner = state_, .get_request = std::move(what)},
                     std::max(options.chunk_bytes, transfer::piece_bytes));
}

}  // namespace lade::io::http
