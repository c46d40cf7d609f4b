// The format of an index file:
//
//   "LADETAR1"  size of the archive  identity  number of entries  entries  checksum
//
// Numbers are of 64 bits, little-endian; texts are their size and their bytes; an entry is its
// name, offset and size. The checksum is FNV-1a of everything before it.

#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/tar_index.hpp>
#include <lade/support/little_endian.hpp>
#include <lade/url.hpp>

#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "new_file.hpp"
#include "query_digest.hpp"

namespace lade::io {

static constexpr std::string_view index_magic = "LADETAR1";

static std::uint64_t fnv1a(std::string_view bytes) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (auto c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

[[noreturn]] static void refuse_index(const char* reason) {
  throw error(errc::invalid_data, "read an index", reason);
}

static void append_text(std::string& to, std::string_view text) {
  support::append_little<std::uint64_t>(to, text.size());
  to += text;
}

std::string to_bytes(const tar_index& index) {
  std::string bytes(index_magic);
  support::append_little(bytes, index.archive_bytes());
  append_text(bytes, index.identity());
  support::append_little<std::uint64_t>(bytes, index.entries().size());
  for (const auto& each : index.entries()) {
    append_text(bytes, each.name());
    support::append_little(bytes, each.offset());
    support::append_little(bytes, each.bytes());
  }
  support::append_little(bytes, fnv1a(bytes));
  return bytes;
}

static std::uint64_t take_number(std::string_view& from) {
  if (from.size() < sizeof(std::uint64_t)) refuse_index("it is cut short");
  auto value = support::load_little<std::uint64_t>(from);
  from.remove_prefix(sizeof value);
  return value;
}

static std::string take_text(std::string_view& from) {
  auto bytes = take_number(from);
  if (bytes > from.size()) refuse_index("a text is longer than the file");
  std::string text(from.substr(0, bytes));
  from.remove_prefix(bytes);
  return text;
}

tar_index tar_index_from_bytes(std::string_view bytes) {
  constexpr auto checksum_bytes = sizeof(std::uint64_t);
  if (!bytes.starts_with(index_magic)) refuse_index("it is no index, or of another version");
  if (bytes.size() < index_magic.size() + checksum_bytes) refuse_index("it is cut short");
  auto content = bytes.substr(0, bytes.size() - checksum_bytes);
  if (fnv1a(content) != support::load_little<std::uint64_t>(bytes.substr(content.size())))
    refuse_index("its checksum is wrong");
  content.remove_prefix(index_magic.size());
  auto archive_bytes = take_number(content);
  auto identity = take_text(content);
  auto count = take_number(content);
  constexpr auto least_entry_bytes = 3 * sizeof(std::uint64_t);
  if (count > content.size() / least_entry_bytes)
    refuse_index("it has fewer entries than it states");
  std::vector<tar_entry> entries;
  entries.reserve(count);
  while (entries.size() < count) {
    auto name = take_text(content);
    auto offset = take_number(content);
    entries.emplace_back(std::move(name), offset, take_number(content));
  }
  if (!content.empty()) refuse_index("it has more entries than it states");
  return {archive_bytes, std::move(identity), std::move(entries)};
}

std::string index_path(const std::string& archive, const std::string& directory) {
  constexpr auto extension = ".lade-index";
  bool is_url = !scheme_of(archive).empty();
  auto name = is_url ? archive.substr(0, archive.find('?')) : archive;
  if (directory.empty()) return name.size() < archive.size() ? std::string() : archive + extension;
  auto query = detail::query_digest(archive);
  return fmt::format("{}/{}-{:016x}{}{}", directory, name.substr(name.rfind('/') + 1), fnv1a(name),
                     query.empty() ? "" : "-" + query, extension);
}

void save(const tar_index& index, const std::string& path) {
  auto bytes = to_bytes(index);
  detail::new_file file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.publish();
}

static task<std::optional<tar_index>> try_load_index(std::string path) {
  std::optional<tar_index> found;
  if (path.empty()) co_return found;
  try {
    auto file = co_await try_open(path);
    if (file) {
      auto bytes = co_await file->read_at(0, static_cast<std::size_t>(file->size()));
      found = tar_index_from_bytes(bytes.text());
    }
  } catch (const error& failure) {
    if (failure.code() == errc::stopped || failure.code() == errc::no_runtime) throw;
  }
  co_return found;
}

static void try_save(const tar_index& index, const std::string& path) {
  try {
    save(index, path);
  } catch (const error&) {}
}

task<tar_index> load_or_index_tar(std::shared_ptr<const byte_reader> archive, std::string identity,
                                  std::string path, tar_options options) {
  auto found = co_await try_load_index(path);
  if (found && found->archive_bytes() == archive->size() && found->identity() == identity)
    co_return std::move(*found);
  auto reported = options.log ? options.log->count() : 0;
  auto made = co_await index_tar(std::move(archive), std::move(identity), options);
  bool is_whole = !options.log || options.log->count() == reported;
  if (is_whole && scheme_of(path).empty() && !path.empty()) try_save(made, path);
  co_return made;
}

}  // namespace lade::io
