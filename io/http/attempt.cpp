#include "attempt.hpp"

#include "hops.hpp"
#include "ranges.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

host_share::host_share(client::state& client, const origin& host) : client_(client) {
  std::lock_guard lock(client_.mutex);
  auto most = client_.settings.options.connections_per_host;
  host_ = client_.hosts.try_emplace(host.authority(), most).first;
  ++host_->second.users;
}

host_share::~host_share() {
  std::lock_guard lock(client_.mutex);
  if (--host_->second.users == 0) client_.hosts.erase(host_);
}

const client::token_function* client::state::token_for(const origin& host) const {
  auto found = tokens.find(host.authority());
  if (found == tokens.end()) found = tokens.find(host.host);
  return found == tokens.end() ? nullptr : &found->second;
}

live_transfer::live_transfer(std::shared_ptr<client::state> client, lade::runtime& runtime)
    : client_(std::move(client)),
      easy_(client_->handles.take()),
      transfer_(std::make_unique<transfer>(easy_.get())),
      use_(runtime) {
  transfer_->stall_timeout = client_->settings.options.stall_timeout;
  transfer_->idle_timeout = client_->settings.options.idle_timeout;
  transfer_->keeps_authorizations = client_->settings.has_netrc();
  transfer_->proxy_urls = client_->settings.through.urls();
}

// A transfer whose owner was destroyed, posted to its reactor's thread to end there.
struct live_transfer::ended_elsewhere {
  std::unique_ptr<transfer> ended;
  easy_handle easy;
  reactor_thread& reactor;
  std::shared_ptr<client::state> owner;

  void end() noexcept {
    reactor.service<engine>().abort(*ended);
    owner->handles.give_back(std::move(easy));
  }
};

live_transfer::~live_transfer() {
  auto at = transfer_->at();
  if (at == transfer::stage::idle || at == transfer::stage::over) {
    client_->handles.give_back(std::move(easy_));
    return;
  }
  auto* last =
      new ended_elsewhere{std::move(transfer_), std::move(easy_), *reactor_, std::move(client_)};
  reactor_->post({[](void* self) noexcept {
                    const std::unique_ptr<ended_elsewhere> owned(
                        static_cast<ended_elsewhere*>(self));
                    owned->end();
                  },
                  last});
}

// Allocates memory for the next piece of a body: for the whole body if its length is known, else
// twice the present size. Copies the bytes received so far, by earlier attempts too.
static task<> allocate_destination(transfer& paused, received& into, std::uint64_t most) {
  auto is_encoded = !paused.head.value("content-encoding").empty();
  auto length = is_encoded ? std::nullopt : paused.head.length();
  auto done = paused.filled;
  auto needed = std::max<std::uint64_t>(length.value_or(2 * done), done + paused.needed);
  auto larger = co_await allocate(
      static_cast<std::size_t>(std::min<std::uint64_t>(into.filled + needed, most)));
  if (into.filled > 0) std::memcpy(larger.data(), into.content.data(), into.filled);
  if (done > 0) std::memcpy(larger.data() + into.filled, paused.destination.data(), done);
  into.content = std::move(larger);
  paused.content = {};
  paused.memory = into.content.bytes().subspan(into.filled);
}

// The reason to end a paused transfer that exceeds its limits; empty if it may continue.
static std::string excess_of(const transfer& paused, const received& into, std::uint64_t most) {
  if (!into.destination.empty()) return "the server sent more than the requested part";
  auto needed =
      std::max<std::uint64_t>(paused.filled + paused.needed, paused.head.length().value_or(0));
  if (needed <= most - into.filled) return {};
  return longer_than(most);
}

// Acquires byte permits for the memory of a paused transfer, and makes it the destination. Memory
// is allocated before: a holder of byte permits must wait for nothing but its server, so that every
// holder releases them.
static task<> use_memory(transfer& paused, byte_share& share) {
  auto bytes = paused.memory.size();
  co_await share.permits().acquire(bytes);
  share.add(bytes);
  paused.destination = paused.memory;
}

// Runs a transfer to its end. Returns the failure if the body is refused.
static task<std::optional<failed_attempt>> run_to_end(client::state& client, live_transfer& hop,
                                                      received& into, const context& current) {
  auto& running = *hop;
  auto most = into.max_bytes;
  byte_share share(client.bytes);
  running.share = &share;
  if (!into.memory().empty()) {
    running.memory = into.memory().subspan(into.filled);
  } else {
    running.allocates_in = &current;
    running.most_bytes = static_cast<std::size_t>(most);
  }
  while (true) {
    co_await hop.step();
    if (running.at() == transfer::stage::over) break;
    if (running.destination.size() == running.memory.size()) {
      if (auto reason = excess_of(running, into, most); !reason.empty())
        co_return failed_attempt{
            .code = make_error_code(into.destination.empty() ? errc::limit_exceeded
                                                             : errc::invalid_data),
            .reason = std::move(reason)};
      share.release();
      co_await allocate_destination(running, into, most);
    }
    co_await use_memory(running, share);
  }
  if (!running.content.empty()) into.content = std::move(running.content);
  co_return std::nullopt;
}

void count(client::state& client, const transfer& ended) {
  long connected = 0;
  curl_easy_getinfo(ended.handle(), CURLINFO_NUM_CONNECTS, &connected);
  client.connections += static_cast<std::uint64_t>(connected);
  ++client.requests;
  client.bytes_in += ended.filled;
  client.bytes_out += ended.sent;
}

static attempt_result failed(failed_attempt failure) {
  return {.answer = {}, .divided = {}, .failure = std::move(failure)};
}

// Keeps the bytes of a transfer that broke off, if another attempt can continue after them.
static void keep(received& progress, const transfer& broken) {
  bool is_body = broken.head.is_complete && !broken.misfits &&
                 (broken.head.status == 200 || broken.head.status == 206);
  if (!is_body) return;
  auto tag = broken.head.value("etag");
  bool can_continue = is_strong(tag) && broken.head.value("content-encoding").empty();
  if (can_continue) {
    if (progress.filled == 0) progress.head = broken.head;
    progress.filled += broken.filled;
  } else {
    progress.restart();
  }
}

static std::string misfit_text(const byte_range& requested) {
  return "the server sent another part than bytes " + range_text(requested);
}

static attempt_result answer_of(const std::string& url, response_head& head, buffer body) {
  attempt_result result;
  result.answer.emplace(without_secrets(url), head.status, std::move(head.headers),
                        std::move(body));
  return result;
}

// The number of requested bytes of the object that this attempt has not received.
static std::uint64_t missing_bytes(const received& progress, const byte_range& requested,
                                   std::uint64_t received_bytes) noexcept {
  auto end = progress.object_bytes().value_or(0);
  if (requested.bytes != byte_range::to_end)
    end = std::min(end, requested.offset + requested.bytes);
  auto reached = requested.offset + received_bytes;
  return end > reached ? end - reached : 0;
}

// The result of an attempt whose transfer is over.
static attempt_result conclude(const std::string& url, bool gets, transfer& ended,
                               received& progress, const byte_range& requested) {
  auto& head = ended.head;
  if (ended.is_divided)
    return {.answer = {}, .divided = divided_object{url, std::move(head)}, .failure = {}};
  bool is_continued = progress.filled > 0;
  bool is_body = head.status >= 200 && head.status < 300;
  if (is_continued && ended.succeeded() && head.status == 412) return failed(changed_object());
  if (is_continued && is_body && head.is_complete)
    if (auto refused = refusal_of_entity(head, progress.etag(), progress.object_bytes())) {
      refused->again = refused->code == errc::invalid_data;
      if (refused->again) progress.restart();
      return failed(*std::move(refused));
    }
  if (ended.succeeded() && head.status == 416 && is_continued) {
    progress.restart();
    return failed({.code = make_error_code(errc::invalid_data),
                   .reason = "the object is shorter than the server has stated",
                   .again = true});
  }
  bool is_part = ended.succeeded() && ended.expected && head.status < 300;
  auto part = is_part ? part_bytes(head, requested) : std::nullopt;
  if (ended.misfits || (is_part && !part)) {
    if (is_continued) progress.restart();
    return failed({.code = make_error_code(errc::invalid_data),
                   .reason = misfit_text(requested),
                   .again = is_continued});
  }
  if (part && *part != ended.filled) {
    auto reason = fmt::format("the server sent {} of {} bytes", ended.filled, *part);
    keep(progress, ended);
    return failed({.code = make_error_code(errc::invalid_data), .reason = reason, .again = true});
  }
  if (ended.succeeded() && !is_continued && is_of_no_bytes(head))
    return answer_of(url, head, buffer());
  if (!ended.succeeded() || !is_body) {
    keep(progress, ended);
    return failed(failure_of(ended));
  }
  bool is_whole = head.status == 200 || head.status == 203;
  if (gets && !is_whole && !ended.expected)
    return failed({.code = status_code(head.status),
                   .reason = status_code(head.status).message() + ", which is no object"});
  progress.filled += ended.filled;
  if (auto lacking = missing_bytes(progress, requested, ended.filled); is_continued && lacking > 0)
    return failed({.code = make_error_code(errc::invalid_data),
                   .reason = fmt::format("the rest that the server sent lacks {} bytes", lacking),
                   .again = true});
  if (progress.filled < progress.destination.size())
    return failed({.code = make_error_code(errc::changed),
                   .reason = "the object has become shorter while it was read"});
  auto body = progress.destination.empty() && progress.filled > 0
                  ? progress.content.slice(0, progress.filled)
                  : buffer();
  return answer_of(url, is_continued ? *progress.head : head, std::move(body));
}

// Records the checksum that the response states for the whole object, if it states one.
static void expect_checksum(const client::state& client, const request& request,
                            const transfer& ended, received& progress) {
  bool is_decoded =
      client.settings.options.decompress && !ended.head.value("content-encoding").empty();
  bool is_whole = request.method() == "GET" && request.range.is_all() && progress.filled == 0;
  if (client.settings.options.verify_checksums && is_whole && !is_decoded)
    progress.checksum = object_checksum::stated_by(ended.head);
}

// Verifies the checksum of a body, if its response states one. A mismatch makes the attempt fail,
// and the next one start from the beginning.
static task<> verify(client::state& client, received& progress, attempt_result& result) {
  if (!result.answer || !progress.checksum) co_return;
  co_await update_checksum(*progress.checksum, progress.memory().first(progress.filled));
  auto mismatch = progress.checksum->mismatch();
  ++client.verified;
  if (mismatch.empty()) co_return;
  progress.restart();
  result = failed({.code = make_error_code(errc::invalid_data), .reason = mismatch, .again = true});
}

task<attempt_result> attempt(std::shared_ptr<client::state> client, const request& request,
                             received& progress) {
  auto& current = co_await this_context_reference();
  if (!current.runtime)
    throw error(errc::no_runtime, describe_request(request.method(), request.url()));
  route way(request);
  while (true) {
    auto tag = progress.filled > 0 ? progress.etag() : request.if_match;
    auto headers = co_await make_headers(*client, request, way, std::move(tag));
    auto start = std::chrono::system_clock::now();
    auto found = co_await look_up(*client, way);
    if (found.failure) {
      name_hop(way, *found.failure);
      co_return failed(std::move(*found.failure));
    }
    host_share host(*client, way.at);
    co_await host.permits().acquire();  // first: a slow host must not hold all permits
    permit one_of_host(host.permits());
    co_await client->permits.acquire();
    permit one_of_all(client->permits);
    auto range = rest_of(request.range, progress.filled);
    live_transfer hop(client, *current.runtime);
    if (!range.is_all() && request.method() == "GET") hop->expected = range;
    bool may_divide = range.is_all() && request.method() == "GET" && progress.destination.empty();
    if (may_divide) hop->max_undivided_bytes = progress.divide_above;
    set_up(*hop, request, way, range, headers);
    set_addresses(*client, *hop, way, found.addresses);
    share_connection(*client, *hop, way.at);
    auto refused = co_await run_to_end(*client, hop, progress, current);
    count(*client, *hop);
    record_version(*client, *hop, way.at);
    if (!refused && follows_redirect(*client, request, *hop, way, refused)) continue;
    attempt_result result;
    if (refused) {
      result.failure = std::move(refused);
    } else {
      expect_checksum(*client, request, *hop, progress);
      bool gets = request.method() == "GET";
      bool is_body = hop->head.status >= 200 && hop->head.status < 300;
      if (gets && is_body && hop->head.is_complete)
        result.failure = refusal_of_entity(hop->head, request.if_match);
      if (!result.failure) result = conclude(way.url, gets, *hop, progress, range);
      co_await verify(*client, progress, result);
    }
    if (result.failure) {
      result.failure->again = result.failure->again || is_renewed(request, *result.failure, start);
      name_hop(way, *result.failure);
    }
    co_return result;
  }
}

}  // namespace lade::io::http
