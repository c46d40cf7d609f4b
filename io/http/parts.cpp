#include "parts.hpp"

#include "attempt.hpp"
#include "ranges.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/ranges.hpp>
#include <lade/url.hpp>

#include <cstring>
#include <utility>

namespace lade::io::http {

static std::string with_quotes(const std::string& etag) {
  return etag.empty() ? etag : "\"" + etag + "\"";
}

// A strong tag without its quotes; nothing of another.
static std::string stored_tag(std::string_view etag) {
  return is_strong(etag) ? std::string(etag.substr(1, etag.size() - 2)) : std::string();
}

// The response to a GET for a part; nothing if the object ends before it.
static task<std::optional<response>> send_for_part(client to, request what) {
  auto name = without_secrets(what.url());
  try {
    co_return co_await to.send(std::move(what));
  } catch (const error& failure) {
    if (failure.code() == status_code(412))
      throw error(errc::invalid_data, "read " + name, "the object has changed");
    if (failure.code() != status_code(416)) throw;
  }
  co_return std::nullopt;
}

task<object_part> get_part(client from, request what, byte_range part, std::string etag) {
  auto name = without_secrets(what.url());
  what.range = part;
  what.if_match = with_quotes(etag);
  what.accepts_whole = true;
  auto got = co_await send_for_part(std::move(from), std::move(what));
  if (!got) co_return object_part(buffer(), 0, std::move(etag));
  auto tag = stored_tag(got->etag());
  if (!etag.empty() && tag != etag)
    throw error(errc::invalid_data, "read " + name, "the object has changed");
  auto whole = got->status() == 200 ? got->body().size() : got->object_bytes();
  if (!whole)
    throw error(errc::unsupported, "read " + name, "the server does not say how long it is");
  co_return object_part(got->body(), *whole, std::move(tag));
}

static task<buffer> get_at_once(client from, request what) {
  auto got = co_await from.send(std::move(what));
  co_return got.body();
}

// The rest of an object whose beginning is there.
static task<buffer> get_rest(client from, request what, object_part begun) {
  auto bytes = begun.object_bytes();
  auto most = from.options().max_bytes;
  if (bytes > most)
    throw error(errc::limit_exceeded, describe_request("GET", what.url()),
                "the body is longer than max_bytes, " + std::to_string(most));
  what.if_match = with_quotes(begun.etag());
  auto whole = co_await allocate(static_cast<std::size_t>(bytes));
  auto done = begun.content().size();
  std::memcpy(whole.data(), begun.content().data(), done);
  auto rest = from.open_known(std::move(what), bytes);
  co_await read_in_parts(std::move(rest), whole.bytes().subspan(done), done, {});
  co_return whole;
}

task<buffer> get_in_parts(client from, request what) {
  if (from.options().decompress) co_return co_await get_at_once(std::move(from), std::move(what));
  auto first = co_await get_part(from, what, {0, parts_options().part_bytes}, {});
  if (first.is_whole()) co_return first.content();
  if (first.etag().empty()) co_return co_await get_at_once(std::move(from), std::move(what));
  co_return co_await get_rest(std::move(from), std::move(what), std::move(first));
}

}  // namespace lade::io::http
