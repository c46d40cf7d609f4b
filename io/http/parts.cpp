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

[[noreturn]] static void refuse_change(const std::string& name) {
  throw error(errc::invalid_data, "read " + name, "the object has changed");
}

static task<response> send_for_part(client to, request what) {
  auto name = without_secrets(what.url());
  try {
    co_return co_await to.send(std::move(what));
  } catch (const error& failure) {
    if (failure.code() != status_code(412)) throw;
    refuse_change(name);
  }
}

static object_part part_of(const response& got, const std::string& etag, const std::string& name) {
  auto tag = stored_tag(got.etag());
  if (!etag.empty() && tag != etag) refuse_change(name);
  if (got.status() == 206 && !got.header("content-encoding").empty())
    throw error(errc::unsupported, "read " + name, "a part of a compressed response");
  auto whole = got.status() == 206 ? got.object_bytes() : got.body().size();
  if (!whole)
    throw error(errc::unsupported, "read " + name, "the server does not say how long it is");
  return {got.body(), *whole, std::move(tag)};
}

// The response to a GET for an object that is no longer than `most`, or comes as a whole only.
// Asked for without a range, so that it is compared with its checksum.
static task<std::optional<response>> get_small(client from, request what, std::uint64_t most) {
  auto name = without_secrets(what.url());
  try {
    co_return co_await from.get_unless_longer(std::move(what), most);
  } catch (const error& failure) {
    if (failure.code() != status_code(412)) throw;
    refuse_change(name);
  }
}

task<object_part> get_part(client from, request what, byte_range part, std::string etag) {
  auto name = without_secrets(what.url());
  what.if_match = with_quotes(etag);
  if (part.offset == 0) {
    auto whole = co_await get_small(from, what, part.bytes);
    if (whole) co_return part_of(*whole, etag, name);
  }
  what.range = part;
  auto got = co_await send_for_part(std::move(from), std::move(what));
  co_return part_of(got, etag, name);
}

}  // namespace lade::io::http
