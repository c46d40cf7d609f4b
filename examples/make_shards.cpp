// Packs the files of a folder into tar archives of about equal size, several at a time:
//
//   make_shards FOLDER PREFIX [BYTES]     writes PREFIX-000000.tar, PREFIX-000001.tar, ...
//
// Files whose paths differ behind the first dot of their names only are one sample, and stay
// together. The same files give the same archives, byte for byte.

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/tar_writer.hpp>
#include <lade/lade.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct shard_plan {
  std::string path;
  std::string root;
  std::vector<std::string> names = {};  // relative to the root
  std::uint64_t bytes = 0;
};

static std::string_view key_of(std::string_view name) {
  return name.substr(0, name.find('.', name.rfind('/') + 1));
}

static std::vector<std::string> names_below(const std::string& root) {
  std::vector<std::string> names;
  for (auto& file : lade::io::files(root).list_all())
    names.push_back(std::filesystem::path(file.key()).lexically_relative(root).string());
  std::ranges::sort(names, {}, [](const std::string& name) {
    return std::pair(key_of(name), std::string_view(name));
  });
  return names;
}

static std::string numbered(const std::string& prefix, std::size_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "-%06zu.tar", number);
  return prefix + text;
}

// A new archive begins with the first sample that would begin behind `bytes`.
static std::vector<shard_plan> plan(const std::string& root, const std::string& prefix,
                                    std::uint64_t bytes) {
  std::vector<shard_plan> plans;
  std::string last_key;
  for (auto& name : names_below(root)) {
    bool is_new_sample = key_of(name) != last_key;
    if (plans.empty() || (is_new_sample && plans.back().bytes >= bytes))
      plans.push_back({numbered(prefix, plans.size()), root});
    last_key = key_of(name);
    auto size = std::filesystem::file_size(std::filesystem::path(root) / name);
    plans.back().bytes += lade::io::tar_bytes_of(name, size);
    plans.back().names.push_back(std::move(name));
  }
  return plans;
}

static lade::task<std::string> write_shard(shard_plan what) {
  lade::io::tar_writer writer(what.path);
  for (auto& name : what.names) {
    auto content = co_await lade::io::read_file(what.root + "/" + name);
    writer.add(name, content.bytes());
  }
  writer.finish();
  co_return what.path + ": " + std::to_string(what.names.size()) + " files, " +
      std::to_string(writer.bytes()) + " bytes";
}

static void make_shards(const std::string& root, const std::string& prefix, std::uint64_t bytes) {
  lade::runtime runtime;
  auto written = lade::from(plan(root, prefix, bytes)) | lade::map(write_shard, {.concurrency = 8});
  for (auto& line : runtime.run(written)) std::printf("%s\n", line.c_str());
}

int main(int count, char** arguments) {
  if (count < 3 || count > 4) {
    std::fprintf(stderr, "usage: make_shards FOLDER PREFIX [BYTES]\n");
    return 2;
  }
  try {
    constexpr std::uint64_t usual_bytes = std::uint64_t{256} << 20;
    make_shards(arguments[1], arguments[2], count == 4 ? std::stoull(arguments[3]) : usual_bytes);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "make_shards: %s\n", failure.what());
    return 1;
  }
}
