#include "attempt.hpp"
#include "ranges.hpp"

#include <lade/error.hpp>
#include <lade/io/store.hpp>
#include <lade/url.hpp>

#include <chrono>
#include <exception>
#include <utility>

namespace lade::io::http {

// Throws: the response is of another version than the one requested.
[[noreturn]] static void refuse_change(const std::string& name) {
  throw error(errc::changed, "read " + name, "the object has changed");
}

static object_part part_of(const response& got, const request& request) {
  auto name = without_secrets(request.url());
  if (!request.if_match.empty() && got.etag() != request.if_match) refuse_change(name);
  if (got.status() == 206 && !got.header("content-encoding").empty())
    throw error(errc::unsupported, "read " + name, "a part of a compressed response");
  auto whole = got.status() == 206 ? got.object_bytes() : got.body().size();
  if (!whole)
    throw error(errc::unsupported, "read " + name, "the server does not state its length");
  return {got.body(), *whole, std::string(opaque_tag(got.etag()))};
}

static task<object_part> get_by_range(std::shared_ptr<client::state> from, const request& request) {
  auto got = co_await send_named(std::move(from), request);
  co_return part_of(*got.answer, request);
}

// Gets an object that is no longer than the part, or whose server ignores ranges.
static task<std::optional<object_part>> get_small(std::shared_ptr<client::state> from,
                                                  const request& part) {
  auto whole = part;
  whole.range = {};
  auto got = co_await send_named(std::move(from), whole, {}, part.range.bytes);
  std::optional<object_part> small;
  if (got.answer) small = part_of(*got.answer, part);
  co_return small;
}

// Gets the first part of an object that is probably longer. Empty if it is not, or if its server
// ignores ranges.
static task<std::optional<object_part>> get_beginning(std::shared_ptr<client::state> from,
                                                      const request& request) {
  bool verifies = from->settings.options.verify_checksums;
  std::optional<object_part> beginning;
  try {
    beginning = co_await get_by_range(std::move(from), request);
  } catch (const error& failure) {
    // An empty object has no satisfiable range.
    if (failure.code() != errc::invalid_data && failure.code() != status_code(416)) throw;
  }
  if (beginning && beginning->is_whole() && verifies) beginning.reset();
  co_return beginning;
}

// Whether a request is for a few bytes, for instance because it only needs the entity tag. It must
// not receive a response of any length.
static bool is_glance(const request& request) noexcept { return request.range.bytes <= 4096; }

static task<object_part> get_first_part(std::shared_ptr<client::state> from,
                                        const request& request) {
  std::optional<object_part> got;
  if (from->objects_are_long || is_glance(request)) got = co_await get_beginning(from, request);
  if (got) co_return *std::move(got);
  got = co_await get_small(from, request);
  from->objects_are_long = !got;
  if (got) co_return *std::move(got);
  co_return co_await get_by_range(std::move(from), request);
}

// Handles a range after the end of an object: a server refuses it with 416, often without the
// object's length. Empty if that was not the reason.
static task<std::optional<object_part>> get_past_end(std::shared_ptr<client::state> from,
                                                     const request& request) {
  auto first = request;
  first.range = {0, 1};
  auto found = co_await get_first_part(std::move(from), first);
  std::optional<object_part> nothing;
  if (found.object_bytes() <= request.range.offset)
    nothing.emplace(buffer(), found.object_bytes(), found.etag());
  co_return nothing;
}

static task<object_part> get_later_part(std::shared_ptr<client::state> from,
                                        const request& request) {
  std::exception_ptr refusal;
  try {
    co_return co_await get_by_range(from, request);
  } catch (const error& failure) {
    if (failure.code() != status_code(416)) throw;
    refusal = std::current_exception();
  }
  auto nothing = co_await get_past_end(std::move(from), request);
  if (!nothing) std::rethrow_exception(refusal);
  co_return *std::move(nothing);
}

static task<object_part> get_owned_part(std::shared_ptr<client::state> from, request request) {
  require_get("get a part of", request);
  try {
    bool is_first = request.range.offset == 0;
    auto part = is_first ? get_first_part(from, request) : get_later_part(from, request);
    auto in_time = within_deadline(*from, std::chrono::steady_clock::now(), std::move(part),
                                   request.method(), request.url());
    co_return co_await std::move(in_time);
  } catch (const error& failure) {
    if (failure.code() != status_code(412)) throw;
  }
  refuse_change(without_secrets(request.url()));
}

task<object_part> client::get_part(request what) const {
  return get_owned_part(state_, std::move(what));
}

}  // namespace lade::io::http
