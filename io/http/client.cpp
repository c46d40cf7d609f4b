#include "attempt.hpp"
#include "origin.hpp"
#include "ranges.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/http/client.hpp>
#include <lade/io/ranges.hpp>
#include <lade/sleep.hpp>
#include <lade/this_context.hpp>
#include <lade/trace.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace lade::io::http {

std::string_view response::header(std::string_view name) const noexcept {
  return header_value(headers_, name);
}

std::optional<std::uint64_t> response::object_bytes() const noexcept {
  return http::object_bytes(headers_);
}

request::request(std::string_view method, std::string url)
    : may_repeat(method != "POST"), method_(method), url_(std::move(url)) {
  require_no_zero_byte(url_);
  for (auto* known : {"GET", "HEAD", "PUT", "POST", "DELETE"})
    if (method_ == known) return;
  throw error(errc::invalid_argument, "make a request", fmt::format("no method '{}'", method_));
}

client::client(const client_options& options) : state_(std::make_shared<state>(options)) {}

void client::authorize(std::string host, token_function token) {
  auto known = known_host(host);
  if (!token) throw error(errc::invalid_argument, "authorize " + known, "no function for tokens");
  state_->tokens[std::move(known)] = std::move(token);
}

client_statistics client::stats() const {
  auto& s = *state_;
  return {s.requests, s.retries, s.failures, s.bytes_in, s.bytes_out, s.connections, s.verified};
}

std::chrono::nanoseconds pause_before_next(const client_options& options,
                                           const failed_attempt& failure, unsigned attempt,
                                           double draw) noexcept {
  auto pause = pause_after(options.retry, attempt, draw);
  if (failure.retry_after) pause = std::max<std::chrono::nanoseconds>(*failure.retry_after, pause);
  return std::min(pause, options.longest_pause);
}

std::chrono::nanoseconds pause_before_next(const client_options& options,
                                           const failed_attempt& failure, unsigned attempt) {
  thread_local std::minstd_rand random{std::random_device()()};
  return pause_before_next(options, failure, attempt,
                           std::uniform_real_distribution<double>(0, 1)(random));
}

[[noreturn]] static void fail_request(client::state& client, const request& request,
                                      const failed_attempt& failure, unsigned attempt) {
  ++client.failures;
  auto attempts =
      fmt::format(" (attempt {} of {})", attempt, client.settings.options.retry.attempts);
  throw error(failure.code, describe_request(request.method(), request.url()),
              failure.reason + attempts);
}

static task<attempt_result> receive_in_parts(std::shared_ptr<client::state> client,
                                             const request& request, divided_object found);

[[noreturn]] static void refuse_request(const request& request, std::string_view reason) {
  throw error(errc::invalid_argument, describe_request(request.method(), request.url()), reason);
}

static void require_range(const request& request) {
  auto& range = request.range;
  bool is_rest = range.bytes == byte_range::to_end;
  if (range.bytes > 0 && (is_rest || range.offset <= byte_range::to_end - range.bytes)) return;
  refuse_request(request, fmt::format("a range of {} bytes from {} on", range.bytes, range.offset));
}

// Refuses a request whose options contradict each other.
static void require_consistent(const request& request) {
  require_range(request);
  bool has_body = request.method() == "PUT" || request.method() == "POST";
  if (!has_body && !request.body.empty()) refuse_request(request, "only a PUT or POST has a body");
  if (request.method() != "GET" && !request.range.is_all())
    refuse_request(request, "only a GET has a range");
  for (auto* own : {"range", "content-length", "transfer-encoding"})
    if (!header_value(request.headers, own).empty())
      refuse_request(request, fmt::format("the header {} is made of `range` and `body`", own));
}

void require_get(std::string_view doing, const request& request) {
  if (request.method() == "GET") return;
  throw error(errc::invalid_argument, fmt::format("{} {}", doing, without_secrets(request.url())),
              fmt::format("the request is a {}, not a GET", request.method()));
}

void require_whole_get(std::string_view doing, const request& request) {
  require_get(doing, request);
  if (request.range.is_all()) return;
  throw error(errc::invalid_argument, fmt::format("{} {}", doing, without_secrets(request.url())),
              "the request already has a range");
}

// See send_named.
static task<attempt_result> send_until_answered(std::shared_ptr<client::state> client,
                                                const request& request, std::span<std::byte> into,
                                                std::optional<std::uint64_t> most) {
  auto& current = co_await this_context_reference();
  auto& options = client->settings.options;
  require_consistent(request);
  received progress{.destination = into,
                    .content = {},
                    .head = {},
                    .checksum = {},
                    .divide_above = most.value_or(options.divide_above),
                    .max_bytes = std::min(options.max_bytes, request.max_bytes)};
  auto start = std::chrono::steady_clock::now();
  for (unsigned number = 1;; ++number) {
    auto result = co_await attempt(client, request, progress);
    if (result.divided && most) co_return result;
    if (result.divided)
      result = co_await receive_in_parts(client, request, *std::move(result.divided));
    if (result.answer) {
      auto bytes = std::max(progress.filled, result.answer->body().size());
      if (current.trace)
        current.trace->add_io(request.method(), without_secrets(request.url()), start,
                              std::chrono::steady_clock::now(), static_cast<std::int64_t>(bytes));
      co_return result;
    }
    auto& failure = *result.failure;
    if (!failure.again || !request.may_repeat || number == options.retry.attempts)
      fail_request(*client, request, failure, number);
    ++client->retries;
    co_await sleep(pause_before_next(options, failure, number));
  }
}

// Adds the name of the request to errors that lack it.
task<attempt_result> send_named(std::shared_ptr<client::state> client, const request& request,
                                std::span<std::byte> into, std::optional<std::uint64_t> most) {
  std::error_code code;
  std::string reason;
  try {
    co_return co_await send_until_answered(client, request, into, most);
  } catch (const error& failure) {
    code = failure.code();
    reason = failure.what();
  }
  auto doing = describe_request(request.method(), request.url());
  if (reason.starts_with(doing))
    throw error(code, doing, reason.substr(std::min(reason.size(), doing.size() + 2)));
  throw error(code, doing, reason);
}

static task<attempt_result> send_in_time(std::shared_ptr<client::state> client,
                                         const request& request, std::span<std::byte> into = {}) {
  auto answer = send_named(client, request, into, {});
  auto in_time = within_deadline(*client, std::chrono::steady_clock::now(), std::move(answer),
                                 request.method(), request.url());
  co_return co_await std::move(in_time);
}

static task<response> send_owned(std::shared_ptr<client::state> client, request request) {
  auto result = co_await send_in_time(std::move(client), request);
  co_return *std::move(result.answer);
}

// The tasks of a client own its state: the client may be destroyed before they start.
task<response> client::send(request what) const { return send_owned(state_, std::move(what)); }

task<response> client::get(std::string url, byte_range range) const {
  request request("GET", std::move(url));
  request.range = range;
  return send(std::move(request));
}

task<response> client::head(std::string url) const { return send(request("HEAD", std::move(url))); }

task<response> client::put(std::string url, buffer content) const {
  request request("PUT", std::move(url));
  request.body = std::move(content);
  return send(std::move(request));
}

// The version of an object: its entity tag, weak or strong, else its Last-Modified.
static std::string version_of(const response& found) {
  auto tag = found.etag();
  return std::string(tag.empty() ? found.header("last-modified") : tag);
}

// Reads ranges of one version of an object.
class object_reader final : public byte_reader {
 public:
  // `request`: a GET of the whole object, with if_match set to its current tag if that is strong.
  object_reader(std::shared_ptr<client::state> client, request request, std::uint64_t bytes,
                std::string version = {})
      : client_(std::move(client)),
        whole_(std::move(request)),
        name_(without_secrets(whole_.url())),
        version_(std::move(version)),
        bytes_(bytes) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return bytes_; }
  std::string_view etag() const noexcept override { return opaque_tag(whole_.if_match); }
  using byte_reader::read_at;
  task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    if (offset >= bytes_ || into.empty()) co_return 0;
    into = into.first(std::min<std::uint64_t>(into.size(), bytes_ - offset));
    auto request = whole_;
    request.range = {offset, into.size()};
    try {
      auto got = co_await send_in_time(client_, request, into);
      if (is_another(*got.answer)) refuse_change();
    } catch (const error& failure) {
      // The object had these bytes when it was opened.
      if (failure.code() != status_code(412) && failure.code() != status_code(416)) throw;
      refuse_change();
    }
    co_return into.size();
  }

 private:
  std::shared_ptr<client::state> client_;
  request whole_;
  // Without a strong tag, an object with the same length, tag and time counts as the same version.
  bool is_another(const response& part) const {
    bool is_other_version = !version_.empty() && version_of(part) != version_;
    return is_other_version || part.object_bytes().value_or(bytes_) != bytes_;
  }
  [[noreturn]] void refuse_change() const {
    throw error(errc::changed, "read " + name_, "the object has changed");
  }

  std::string name_;
  std::string version_;  // empty if unknown
  std::uint64_t bytes_;
};

// Reads the body of a divided response by ranges of the same version.
static task<attempt_result> receive_in_parts(std::shared_ptr<client::state> client,
                                             const request& request, divided_object found) {
  auto bytes = *found.head.length();
  auto& options = client->settings.options;
  attempt_result result;
  auto most = std::min(options.max_bytes, request.max_bytes);
  if (bytes > most) {
    result.failure = {.code = make_error_code(errc::limit_exceeded), .reason = longer_than(most)};
    co_return result;
  }
  auto checksum = options.verify_checksums ? object_checksum::stated_by(found.head) : std::nullopt;
  auto whole = request;
  whole.if_match = found.head.value("etag");
  auto content = co_await allocate(static_cast<std::size_t>(bytes));
  auto from = std::make_shared<const object_reader>(client, std::move(whole), bytes);
  co_await read_in_parts(std::move(from), content.bytes(), 0);
  if (checksum) {
    ++client->verified;
    co_await update_checksum(*checksum, content.bytes());
    if (auto reason = checksum->mismatch(); !reason.empty()) {
      result.failure = {
          .code = make_error_code(errc::invalid_data), .reason = std::move(reason), .again = true};
      co_return result;
    }
  }
  result.answer.emplace(without_secrets(found.url), found.head.status,
                        std::move(found.head.headers), std::move(content));
  co_return result;
}

// Requests one byte instead of a HEAD: a presigned URL for GET does not permit HEAD.
static task<std::shared_ptr<const byte_reader>> open_object(std::shared_ptr<client::state> client,
                                                            request request) {
  require_whole_get("open", request);
  request.range = {0, 1};
  std::optional<response> found;
  auto name = without_secrets(request.url());
  try {
    auto got = co_await send_in_time(client, request);
    found = std::move(got.answer);
  } catch (const error& failure) {
    if (failure.code() != errc::invalid_data) throw;
    throw error(errc::unsupported, "open " + name,
                std::string("the server does not support ranges: ") + failure.what());
  }
  if (found->status() == 416)
    co_return std::make_shared<const memory_reader>(buffer(), std::move(name));
  auto bytes = found->object_bytes();
  if (!bytes)
    throw error(errc::unsupported, "open " + name, "the server does not state its length");
  if (is_strong(found->etag())) request.if_match = found->etag();
  co_return std::make_shared<const object_reader>(std::move(client), std::move(request), *bytes,
                                                  version_of(*found));
}

task<std::shared_ptr<const byte_reader>> client::open(std::string url) const {
  return open_object(state_, request("GET", std::move(url)));
}

task<std::shared_ptr<const byte_reader>> client::open(request what) const {
  return open_object(state_, std::move(what));
}

}  // namespace lade::io::http
