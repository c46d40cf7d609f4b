#include "kept_index.hpp"

#include <lade/checksum.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/url.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

// Creates one level only, so that a mistyped path creates no tree of directories.
static void make_directory_of_indexes(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directory(path, code);
  if (code) throw error(code, "create the directory of indexes " + path, code.message());
}

// Identifies the version of a file: the entity tag of an object, the modification time of a file.
// Empty if there is neither, as for a member of an archive.
static std::string identity_of_file(const byte_reader& reader) {
  if (const auto tag = reader.etag(); !tag.empty()) return std::string(tag);
  const auto* file = dynamic_cast<const io::file*>(&reader);
  if (file == nullptr || !scheme_of(reader.name()).empty()) return {};
  return std::to_string(file->info().modified.time_since_epoch().count());
}

// A location that is equal in all processes and working directories: the canonical path of a file,
// the URL of an object.
static std::string location_of_file(const byte_reader& file) {
  if (!scheme_of(file.name()).empty()) return file.name();
  std::error_code code;
  const auto path = std::filesystem::weakly_canonical(file.name(), code);
  return code ? file.name() : path.string();
}

// Must be incremented with each change of the index's contents or format.
static constexpr int index_rules = 2;

static constexpr std::string_view index_suffix = ".lade-video-index";

std::string path_of_kept_index(const byte_reader& file, const video_options& options) {
  const std::string directory(options.index_directory);
  make_directory_of_indexes(directory);
  const auto identity = identity_of_file(file);
  if (identity.empty()) return {};
  const auto& demuxing = options.demuxing;
  std::string key;
  for (const std::string& each :
       {std::to_string(index_rules), location_of_file(file), identity, std::to_string(file.size()),
        std::to_string(options.stream.value_or(-1)), std::string(demuxing.format),
        std::string(demuxing.options), std::to_string(static_cast<int>(demuxing.damage)),
        std::to_string(demuxing.trust_times), std::to_string(avformat_version())})
    key += each + '\0';
  crc64nvme sum;
  sum.update(std::as_bytes(std::span(key)));
  return fmt::format("{}/{:016x}{}", directory, sum.value(), index_suffix);
}

task<std::optional<packet_index>> load_kept_index(std::string path) {
  std::optional<packet_index> found;
  try {
    const auto file = co_await io::try_open(path);
    if (!file) co_return found;
    const auto bytes = co_await file->read_at(0, static_cast<std::size_t>(file->size()));
    found = packet_index::parse(bytes, path);
  } catch (const error& failure) {
    if (failure.code() == errc::stopped || failure.code() == errc::no_runtime) throw;
  }
  co_return found;
}

// Whether this is the first call for the directory. The table has one directory per slot: a call
// for another one replaces it.
static bool is_new_directory(const std::filesystem::path& directory) {
  static std::array<std::atomic<std::size_t>, 64> known{};
  const auto hash = std::filesystem::hash_value(directory);
  return known[hash % known.size()].exchange(hash) != hash;
}

// Removes partial files of killed processes. Writing an index takes less than a day.
static void remove_abandoned_indexes(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  const auto partial = std::string(index_suffix) + ".partial-";
  const auto day_ago = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code code;
  for (fs::directory_iterator at(directory, code); !code && at != fs::directory_iterator();
       at.increment(code)) {
    if (at->path().filename().string().find(partial) == std::string::npos) continue;
    std::error_code ignored;
    const auto written = fs::last_write_time(at->path(), ignored);
    if (!ignored && written < day_ago) fs::remove(at->path(), ignored);
  }
}

void keep_index(const packet_index& index, const std::string& path) {
  const auto directory = std::filesystem::path(path).parent_path();
  if (is_new_directory(directory)) remove_abandoned_indexes(directory);
  try {
    save_index(index, path);
  } catch (const error&) {}
}

}  // namespace lade::media
