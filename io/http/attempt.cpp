#include "attempt.hpp"

#include "resolver.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/printable.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <new>
#include <utility>

namespace lade::io::http {

host_share::host_share(client::state& of, const origin& host) : client_(of) {
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

live_transfer::live_transfer(std::shared_ptr<client::state> of, lade::runtime& where)
    : client_(std::move(of)),
      easy_(client_->handles.take()),
      transfer_(std::make_unique<transfer>(easy_.get())),
      use_(where) {
  transfer_->stall_timeout = client_->settings.options.stall_timeout;
}

// A transfer whose owner has gone, on its way to its reactor.
struct live_transfer::ended_elsewhere {
  std::unique_ptr<transfer> ended;
  easy_handle easy;
  detail::reactor& where;
  std::shared_ptr<client::state> owner;

  void end() noexcept {
    where.service<engine>().abort(*ended);
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

std::string describe_request(std::string_view method, std::string_view url) {
  std::string text(method);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text + " " + without_secrets(url);
}

bool is_strong(std::string_view etag) noexcept {
  return etag.size() > 2 && etag.starts_with('"') && etag.ends_with('"');
}

static curl_list with_line(curl_list list, const std::string& line) {
  auto* longer = curl_slist_append(list.get(), line.c_str());
  if (!longer) throw std::bad_alloc();
  (void)list.release();
  return curl_list(longer);
}

static void set_method(transfer& hop, const request& what) {
  auto* easy = hop.handle();
  if (what.method() == "GET") {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  } else if (what.method() == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else if (what.method() == "DELETE") {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "DELETE");
  } else {
    hop.outgoing = what.body;
    auto bytes = static_cast<curl_off_t>(what.body.size());
    bool is_put = what.method() == "PUT";
    curl_easy_setopt(easy, is_put ? CURLOPT_UPLOAD : CURLOPT_POST, 1L);
    curl_easy_setopt(easy, is_put ? CURLOPT_INFILESIZE_LARGE : CURLOPT_POSTFIELDSIZE_LARGE, bytes);
  }
}

static std::string range_text(const byte_range& range) {
  auto text = std::to_string(range.offset) + "-";
  if (range.bytes != byte_range::to_end) text += std::to_string(range.offset + range.bytes - 1);
  return text;
}

// A line break in a header would be another header.
static void require_one_line(const std::string& name, const std::string& value) {
  if ((name + value).find_first_of("\r\n") == std::string::npos && !name.empty()) return;
  throw error(errc::invalid_argument, "send header " + printable(name), "a line break in it");
}

static task<> add_own_headers(client::state& client, const request& what, const origin& to,
                              header_list& headers, bool token_was_refused) {
  headers.insert(headers.end(), what.headers.begin(), what.headers.end());
  if (auto* token = client.token_for(to)) {
    auto bearer = co_await (*token)(token_was_refused);
    headers.emplace_back("Authorization", "Bearer " + bearer);
  }
  if (what.sign) what.sign(what, headers);
}

task<> set_up(client::state& client, transfer& hop, const request& what, const std::string& url,
              const byte_range& range, std::string if_match, bool token_was_refused) {
  origin to(url);
  header_list headers;
  if (!if_match.empty()) headers.emplace_back("If-Match", std::move(if_match));
  bool is_own = to == origin(what.url());
  if (is_own) co_await add_own_headers(client, what, to, headers, token_was_refused);
  if (what.method() == "PUT" || what.method() == "POST") headers.emplace_back("Expect", "");

  for (auto& [name, value] : headers) {
    require_one_line(name, value);
    hop.headers =
        with_line(std::move(hop.headers), name + ":" + (value.empty() ? "" : " ") + value);
  }
  auto* easy = hop.handle();
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, hop.headers.get());
  set_method(hop, what);
  if (!range.is_all()) curl_easy_setopt(easy, CURLOPT_RANGE, range_text(range).c_str());
  if (!is_own) curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  if (curl_easy_setopt(easy, CURLOPT_URL, url.c_str()) != CURLE_OK) throw std::bad_alloc();
  if (to.is_address() || client.settings.may_use_proxy()) co_return;
  auto addresses = co_await resolver::of_process().resolve(to.host);
  hop.addresses = with_line({}, "+" + to.authority() + ":" + addresses);
  curl_easy_setopt(easy, CURLOPT_RESOLVE, hop.addresses.get());
}

static bool is_worth_repeating(CURLcode result) noexcept {
  constexpr std::array passing{
      CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,   CURLE_RECV_ERROR,
      CURLE_SEND_ERROR,           CURLE_GOT_NOTHING,       CURLE_PARTIAL_FILE,
      CURLE_OPERATION_TIMEDOUT,   CURLE_SSL_CONNECT_ERROR, CURLE_HTTP2,
      CURLE_HTTP2_STREAM,         CURLE_SEND_FAIL_REWIND};
  return std::ranges::find(passing, result) != passing.end();
}

static bool is_worth_repeating(int status) noexcept {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

// Seconds; a date counts as not given (RFC 9110, section 10.2.3).
static std::optional<std::chrono::seconds> retry_after(const response_head& head) noexcept {
  auto text = head.value("retry-after");
  std::uint32_t seconds = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return std::chrono::seconds(seconds);
}

static std::string first_line(std::string_view text) {
  constexpr std::size_t most = 200;
  text = text.substr(0, text.find_first_of("\r\n"));
  return printable(text.substr(0, most)) + (text.size() > most ? "..." : "");
}

static std::string_view xml_element(std::string_view body, const std::string& name) {
  auto begin = body.find("<" + name + ">");
  if (begin == std::string_view::npos) return {};
  body.remove_prefix(begin + name.size() + 2);
  return body.substr(0, body.find("</"));
}

// What the body of a refusal says: the code and message of an object store, else its first line.
static std::string explanation_of(std::string_view body) {
  auto message = xml_element(body, "Message");
  if (message.empty()) return first_line(body);
  return std::string(first_line(xml_element(body, "Code"))) + ", " + first_line(message);
}

failed_attempt failure_of(const transfer& ended) {
  if (!ended.succeeded()) {
    std::error_code code(ended.result(), curl_category());
    auto why = code.message();
    if (!ended.reason().empty() && ended.reason() != why) why += ": " + first_line(ended.reason());
    return {.code = code, .why = why, .again = is_worth_repeating(ended.result())};
  }
  auto code = status_code(ended.head.status);
  auto explanation = explanation_of(ended.refusal);
  return {.code = code,
          .why = code.message() + (explanation.empty() ? "" : ": " + explanation),
          .again = is_worth_repeating(ended.head.status),
          .retry_after = retry_after(ended.head)};
}

// Takes a number off the beginning of a text.
static std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

static bool take_prefix(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "bytes 0-499/1234", or "bytes 0-499/*" (RFC 9110, section 14.4).
std::optional<std::uint64_t> part_bytes(const response_head& head,
                                        const byte_range& asked) noexcept {
  auto text = head.value("content-range");
  if (head.status != 206 || !take_prefix(text, "bytes ")) return std::nullopt;
  auto first = take_number(text);
  auto last = take_prefix(text, "-") ? take_number(text) : std::nullopt;
  if (!first || !last || !take_prefix(text, "/") || *last < *first || first != asked.offset)
    return std::nullopt;
  auto bytes = *last - *first + 1;
  if (bytes == asked.bytes) return bytes;
  auto total = take_number(text);
  bool is_rest = total ? *last + 1 == *total : asked.bytes == byte_range::to_end;
  return is_rest && bytes < asked.bytes ? std::optional(bytes) : std::nullopt;
}

static bool is_redirect(const response_head& head) noexcept {
  constexpr std::array statuses{301, 302, 303, 307, 308};
  return std::ranges::find(statuses, head.status) != statuses.end() &&
         !head.value("location").empty();
}

// Memory for the next piece of a body: for all of it where the length is known, else twice as much
// as there is.
static task<> make_room(transfer& paused, received& into, std::uint64_t most) {
  auto is_encoded = !paused.head.value("content-encoding").empty();
  auto length = is_encoded ? std::nullopt : paused.head.length();
  auto done = paused.filled;
  auto needed = std::max<std::uint64_t>(length.value_or(2 * done), done + paused.wanted);
  auto larger = co_await allocate(static_cast<std::size_t>(std::min(needed, most)));
  if (done > 0) std::memcpy(larger.data(), paused.room.data(), done);
  into.content = std::move(larger);
  paused.room = into.content.bytes();
}

// Why a paused transfer cannot have more memory; empty if it can.
static std::string excess_of(const transfer& paused, bool is_part, std::uint64_t most) {
  if (is_part) return "the server sent more than the part that was asked for";
  if (std::max<std::uint64_t>(paused.filled + paused.wanted, paused.head.length().value_or(0)) >
      most)
    return "the body is longer than max_bytes, " + std::to_string(most);
  return {};
}

// Runs a transfer to its end. Returns why it was not, if it was not.
static task<std::optional<failed_attempt>> run_to_end(live_transfer& hop, received& into,
                                                      const context& where, std::uint64_t most) {
  auto& running = *hop;
  bool is_part = !into.memory().empty();
  if (is_part) {
    running.room = into.memory().subspan(into.filled);
  } else {
    running.allocates_in = &where;
    running.most_bytes = static_cast<std::size_t>(most);
  }
  while (true) {
    co_await hop.step();
    if (running.at() == transfer::stage::over) break;
    if (auto why = excess_of(running, is_part, most); !why.empty())
      co_return failed_attempt{
          .code = make_error_code(is_part ? errc::invalid_data : errc::limit_exceeded),
          .why = std::move(why)};
    co_await make_room(running, into, most);
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

// The part that is left to ask for.
static byte_range rest_of(const byte_range& range, std::size_t filled) noexcept {
  auto bytes = range.bytes == byte_range::to_end ? range.bytes : range.bytes - filled;
  return {range.offset + filled, bytes};
}

static attempt_result failed(failed_attempt how) {
  return {.answer = {}, .failure = std::move(how)};
}

// Keeps what a transfer that broke off has received, if another can continue it.
static void keep(received& so_far, const transfer& broken) {
  bool is_body = !broken.misfits && (broken.head.status == 200 || broken.head.status == 206);
  if (!is_body) return;
  auto tag = broken.head.value("etag");
  bool can_continue = is_strong(tag) && broken.head.value("content-encoding").empty();
  if (can_continue && !(broken.expects_part && broken.is_accepted_whole())) {
    so_far.etag = tag;
    so_far.filled += broken.filled;
  } else {
    so_far.begin_anew();
  }
}

static std::string misfit_text(const byte_range& asked) {
  return "the server sent another part than bytes " + range_text(asked);
}

// What a transfer that is over makes of an attempt.
static attempt_result conclude(const std::string& url, transfer& ended, received& so_far,
                               const byte_range& asked) {
  auto& head = ended.head;
  bool is_continued = so_far.filled > 0;
  if (ended.succeeded() && head.status == 412 && is_continued)
    return failed({.code = make_error_code(errc::invalid_data),
                   .why = "the object has changed while it was read"});
  bool is_part =
      ended.succeeded() && ended.expects_part && head.status < 300 && !ended.is_accepted_whole();
  auto part = is_part ? part_bytes(head, asked) : std::nullopt;
  if (ended.misfits || (is_part && !part)) {
    if (is_continued) so_far.begin_anew();
    return failed({.code = make_error_code(errc::invalid_data),
                   .why = misfit_text(asked),
                   .again = is_continued});
  }
  if (part && *part != ended.filled) {
    auto why = "the server sent " + std::to_string(ended.filled) + " of " + std::to_string(*part) +
               " bytes";
    keep(so_far, ended);
    return failed({.code = make_error_code(errc::invalid_data), .why = why, .again = true});
  }
  if (!ended.succeeded() || head.status >= 300 || head.status < 200) {
    keep(so_far, ended);
    return failed(failure_of(ended));
  }
  so_far.filled += ended.filled;
  if (so_far.filled < so_far.room.size())
    return failed({.code = make_error_code(errc::invalid_data),
                   .why = "the object has become shorter while it was read"});
  auto body =
      so_far.room.empty() && so_far.filled > 0 ? so_far.content.slice(0, so_far.filled) : buffer();
  attempt_result result;
  result.answer.emplace(without_secrets(url), head.status, std::move(head.headers),
                        std::move(body));
  return result;
}

bool leads_on(const client::state& client, const request& what, const transfer& ended, route& way,
              std::optional<failed_attempt>& refused) {
  if (!ended.succeeded()) return false;
  bool is_read = what.method() == "GET" || what.method() == "HEAD";
  if (is_redirect(ended.head) && is_read) {
    auto next = redirected(way.url, std::string(ended.head.value("location")));
    auto most = client.settings.options.redirects;
    auto refuse = [&](std::string why) {
      refused = failed_attempt{.code = status_code(ended.head.status), .why = std::move(why)};
      return false;
    };
    if (++way.redirects > most) return refuse("more than " + std::to_string(most) + " redirects");
    if (way.url.starts_with("https:") && !next.starts_with("https:"))
      return refuse("redirected from https to " + without_secrets(next));
    way.url = std::move(next);
    return true;
  }
  bool is_unauthorized = ended.head.status == 401 && client.token_for(origin(way.url));
  return is_unauthorized && !std::exchange(way.token_was_refused, true);
}

task<attempt_result> attempt(std::shared_ptr<client::state> client, const request& what,
                             received& so_far) {
  auto& here = co_await lade::detail::this_context_reference();
  if (!here.runtime) throw error(errc::no_runtime, describe_request(what.method(), what.url()));
  co_await client->permits.acquire();
  permit one_of_all(client->permits);
  route way{.url = what.url()};
  while (true) {
    host_share host(*client, origin(way.url));
    co_await host.permits().acquire();
    permit one_of_host(host.permits());
    auto range = rest_of(what.range, so_far.filled);
    live_transfer hop(client, *here.runtime);
    hop->expects_part = !range.is_all() && what.method() == "GET";
    hop->accepts_whole = what.accepts_whole && range.offset == 0;
    auto tag = so_far.filled > 0 ? so_far.etag : what.if_match;
    co_await set_up(*client, *hop, what, way.url, range, std::move(tag), way.token_was_refused);
    auto refused = co_await run_to_end(hop, so_far, here, client->settings.options.max_bytes);
    count(*client, *hop);
    if (!refused && leads_on(*client, what, *hop, way, refused)) continue;
    if (refused) co_return failed(*std::move(refused));
    co_return conclude(way.url, *hop, so_far, range);
  }
}

}  // namespace lade::io::http
