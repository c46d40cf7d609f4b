// Reads any bytes as an archive of samples: as a stream and by an index, which must give the same
// samples or both refuse the archive.

#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/io/formats/tar_samples.hpp>
#include <lade/io/formats/webdataset.hpp>
#include <lade/io/store.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace lade;

static constexpr std::string_view archive_url = "fuzz://a.tar";

// All URLs are the archive. It has no entity tag, so no index of it is kept.
class one_archive final : public io::store {
 public:
  task<buffer> read(std::string) const override { co_return content; }
  task<std::shared_ptr<const byte_reader>> open(std::string url, bool) const override {
    co_return std::make_shared<const memory_reader>(content, url);
  }
  async_generator<buffer> stream(std::string url, stream_options options) const override {
    return lade::stream(std::make_shared<const memory_reader>(content, url), options);
  }

  buffer content;
};

static std::string text_of(const sample& read) {
  auto text = read.key() + " " + std::to_string(read.label()) + " " +
              (read.has_data() ? std::string(read.data().text()) : "no data");
  for (auto& each : read.fields())
    text += "; " + each.name() + "=" + std::string(each.bytes().text());
  return text;
}

// Samples up to a failure, and which that was.
struct outcome {
  std::vector<std::string> samples;
  std::string failure;
};

static task<> read_stream(io::read_tar_options options, std::vector<std::string>& into) {
  auto samples = io::read_tar.with(options)(sample(std::string(archive_url)));
  while (auto* each = co_await samples.next()) into.push_back(text_of(*each));
}

static task<> read_indexed(io::read_tar_options options, bool& is_indexed,
                           std::vector<std::string>& into) {
  io::shards shards{std::vector(1, std::string(archive_url))};
  io::tar_samples_options indexing;
  indexing.read = options;
  auto indexed = co_await io::index_shards(std::move(shards), indexing);
  is_indexed = true;
  auto read = indexed.read();
  for (auto& listed : indexed.list_all()) {
    auto made = co_await read(listed);
    into.push_back(text_of(made));
  }
}

template <class Work>
static outcome outcome_of(runtime& where, Work work) {
  outcome result;
  try {
    sync_wait(where, work(result.samples));
  } catch (const error& failure) {
    result.failure = failure.what();
  }
  return result;
}

// Of an archive that only a stream can read.
static bool is_for_streams(const outcome& indexed) {
  return indexed.failure.find("read the shards as a stream instead") != std::string::npos ||
         indexed.failure.find("compressed") != std::string::npos;
}

[[noreturn]] static void tell_apart(const outcome& streamed, const outcome& indexed) {
  for (auto* each : {&streamed, &indexed}) {
    std::fprintf(stderr, "%s\n", each == &streamed ? "streamed:" : "indexed:");
    for (auto& text : each->samples) std::fprintf(stderr, "  %s\n", text.c_str());
    std::fprintf(stderr, "  failure: %s\n", each->failure.c_str());
  }
  std::abort();
}

static void compare(runtime& where, const io::read_tar_options& options) {
  auto streamed = outcome_of(where, [&](auto& into) { return read_stream(options, into); });
  bool is_indexed = false;
  auto indexed =
      outcome_of(where, [&](auto& into) { return read_indexed(options, is_indexed, into); });
  bool is_same = is_indexed ? indexed.samples == streamed.samples &&
                                  indexed.failure.empty() == streamed.failure.empty()
                            : !streamed.failure.empty() || is_for_streams(indexed);
  if (!is_same) tell_apart(streamed, indexed);
}

// Gives the headers the checksums that they should have, so that more of them are read.
static void repair_headers(std::span<std::byte> archive) {
  constexpr std::size_t block_bytes = 512;
  constexpr std::size_t checksum_at = 148;
  while (archive.size() >= block_bytes) {
    auto* header = reinterpret_cast<char*>(archive.data());
    std::memset(header + checksum_at, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < block_bytes; ++i) sum += static_cast<unsigned char>(header[i]);
    if (sum == 8 * ' ') return;
    char digits[8];
    (void)std::snprintf(digits, sizeof digits, "%06o", sum);
    std::memcpy(header + checksum_at, digits, sizeof digits - 1);
    auto bytes = std::strtoull(std::string(header + 124, 11).c_str(), nullptr, 8);
    auto blocks = 1 + bytes / block_bytes + (bytes % block_bytes > 0 ? 1 : 0);
    archive = archive.subspan(
        static_cast<std::size_t>(std::min<std::uint64_t>(blocks, archive.size() / block_bytes)) *
        block_bytes);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static runtime where({.threads = 1});
  static const auto archive = std::make_shared<one_archive>();
  static const bool is_mounted = (io::mount("fuzz://", archive), true);
  if (!is_mounted || size == 0) return 0;
  archive->content = buffer(size);
  std::memcpy(archive->content.data(), data, size);
  io::damage_log log;
  io::read_tar_options options{.chunk_bytes = 700,
                               .tar = {.max_member_bytes = 1 << 20, .log = &log},
                               .decompress = {.max_bytes = 1 << 22, .max_window_bytes = 1 << 20}};
  auto labelled = options;
  labelled.fields = "jpg,seg.png";
  labelled.data = "jpg,png";
  labelled.label = "cls";
  for (bool repaired : {false, true}) {
    if (repaired) repair_headers(archive->content.bytes());
    compare(where, labelled);
    for (auto policy :
         {io::on_damage::fail, io::on_damage::skip_member, io::on_damage::end_archive}) {
      options.tar.on_damage = policy;
      compare(where, options);
    }
  }
  return 0;
}
