#include "kept_index.hpp"

#include <lade/checksum.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/url.hpp>

#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

extern "C" {
#include <libavformat/avformat.h>
}

namespace lade::media {

// One level: a mistyped name creates no tree of directories.
static void make_directory_of_indexes(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directory(path, code);
  if (code) throw error(code, "create the directory of indexes " + path, code.message());
}

// What tells the bytes of a file from others of its name: of an object its entity tag, of a file
// the time of modification. Empty if there is neither, as of a member of an archive.
static std::string identity_of_file(const byte_reader& of) {
  if (const auto tag = of.etag(); !tag.empty()) return std::string(tag);
  const auto* file = dynamic_cast<const io::file*>(&of);
  if (file == nullptr || !scheme_of(of.name()).empty()) return {};
  return std::to_string(file->info().modified.time_since_epoch().count());
}

std::string path_of_kept_index(const byte_reader& of, const video_options& options) {
  const std::string directory(options.index_directory);
  make_directory_of_indexes(directory);
  const auto identity = identity_of_file(of);
  if (identity.empty()) return {};
  const auto& demuxing = options.demuxing;
  std::string key;
  for (const std::string& each :
       {of.name(), identity, std::to_string(of.size()), std::to_string(options.stream.value_or(-1)),
        std::string(demuxing.format), std::string(demuxing.options),
        std::to_string(static_cast<int>(demuxing.damage)), std::to_string(demuxing.trust_times),
        std::to_string(avformat_version())})
    key += each + '\0';
  crc64nvme sum;
  sum.update(std::as_bytes(std::span(key)));
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(sum.value()));
  return directory + '/' + name + ".lade-video-index";
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

void keep_index(const packet_index& index, const std::string& path) {
  try {
    save_index(index, path);
  } catch (const error&) {}
}

}  // namespace lade::media
