#include <lade/error.hpp>
#include <lade/io/store.hpp>
#include <lade/printable.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

async_generator<object_info> store::list(std::string prefix) const {
  throw error(errc::unsupported, "list " + without_secrets(prefix), "its store has no listings");
}

task<std::string> store::identity() const { co_return std::string(); }

task<object_part> store::read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                                   std::string etag) const {
  auto from = co_await open(std::move(url), false);
  std::string found(from->etag());
  if (!etag.empty() && found != etag)
    throw error(errc::changed, "read " + from->name(), "the object has changed");
  auto size = from->size();
  offset = std::min(offset, size);
  auto content = co_await from->read_at(
      offset, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size - offset)));
  co_return object_part(std::move(content), size, std::move(found));
}

struct mounted_stores {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const store>, std::less<>> by_prefix;  // guarded by mutex

  static mounted_stores& of_process() {
    static mounted_stores only;
    return only;
  }
};

static void require_mountable(std::string_view prefix,
                              const std::shared_ptr<const store>& mounted) {
  constexpr auto doing = "mount a store";
  auto name = fmt::format("'{}'", without_secrets(prefix));
  auto scheme = scheme_of(prefix);
  if (scheme.empty()) throw error(errc::invalid_argument, doing, name + " is no URL");
  if (scheme == "file")
    throw error(errc::invalid_argument, doing, name + " names files, which no store reads");
  if (!mounted)
    throw error(errc::invalid_argument, doing, fmt::format("the store for {} is null", name));
}

void mount(std::string_view prefix, std::shared_ptr<const store> where) {
  require_mountable(prefix, where);
  auto& stores = mounted_stores::of_process();
  std::lock_guard lock(stores.mutex);
  stores.by_prefix.insert_or_assign(std::string(prefix), std::move(where));
}

bool mount_if_free(std::string_view prefix, std::shared_ptr<const store> where) {
  require_mountable(prefix, where);
  auto& stores = mounted_stores::of_process();
  std::lock_guard lock(stores.mutex);
  return stores.by_prefix.emplace(prefix, std::move(where)).second;
}

void unmount(std::string_view prefix) {
  auto& stores = mounted_stores::of_process();
  std::lock_guard lock(stores.mutex);
  if (auto found = stores.by_prefix.find(prefix); found != stores.by_prefix.end())
    stores.by_prefix.erase(found);
}

[[noreturn]] static void refuse_unmounted(std::string_view name) {
  auto scheme = std::string(scheme_of(name));
  bool is_of_http = scheme == "http" || scheme == "https" || scheme == "s3" || scheme == "gs";
  throw error(errc::unsupported, "open " + without_secrets(name),
              fmt::format("no store is mounted at {}://{}", scheme,
                          is_of_http ? "; include <lade/io/http/urls.hpp>" : ""));
}

std::shared_ptr<const store> find_store(std::string_view name) {
  auto scheme = scheme_of(name);
  if (scheme.empty() || scheme == "file") return nullptr;
  auto& stores = mounted_stores::of_process();
  std::lock_guard lock(stores.mutex);
  std::shared_ptr<const store> found;
  std::size_t longest = 0;
  for (auto& [prefix, where] : stores.by_prefix)
    if (name.starts_with(prefix) && prefix.size() > longest) {
      longest = prefix.size();
      found = where;
    }
  if (!found) refuse_unmounted(name);
  return found;
}

[[noreturn]] static void refuse_path(std::string_view name, std::string_view reason) {
  throw error(errc::invalid_argument, "open " + printable(without_secrets(name)), reason);
}

// The path of a file URL (RFC 8089): the host is empty or "localhost", the path is percent-encoded.
static std::string path_of_url(std::string_view name) {
  auto rest = name.substr(std::string_view("file://").size());
  auto host = rest.substr(0, rest.find('/'));
  rest.remove_prefix(host.size());
  if ((!host.empty() && host != "localhost") || rest.empty())
    refuse_path(name, "not a file of this machine");
  auto path = percent_decoded(rest);
  if (!path) refuse_path(name, "a % without two hexadecimal digits");
  return *std::move(path);
}

std::string local_path(std::string name) {
  bool is_url = scheme_of(name) == "file";
  auto path = is_url ? path_of_url(name) : name;
  if (path.find('\0') != path.npos) refuse_path(name, "no path has a zero byte");
  return path;
}

}  // namespace lade::io
