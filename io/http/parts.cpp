#include "parts.hpp"

#include "ranges.hpp"

#include <lade/error.hpp>
#include <lade/url.hpp>

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

}  // namespace lade::io::http
