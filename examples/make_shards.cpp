// Packs the files of a folder into tar archives of about equal size, several at a time:
//
//   make_shards FOLDER PREFIX [BYTES]     writes PREFIX-000000.tar, PREFIX-000001.tar, ...
//
// Files whose paths differ behind the first dot of their names only are one sample, and stay
// together: "a.jpg" and "a.1.jpg" are the fields "jpg" and "1.jpg" of "a". The same files give the
// same archives, byte for byte.
//
// Files that readers of shards ignore are skipped and named on standard error: files without an
// extension, hidden files, files in a first directory like "__this__", and other objects than
// files. Fields are called in lower case, so nothing is written where "a.jpg" and "a.JPG" would be
// one field.

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/tar_writer.hpp>
#include <lade/lade.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
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

// The files that are skipped, or that cannot be in one archive together.
class findings {
 public:
  void leave_out(const std::string& name, const char* reason) {
    tell("left out " + lade::printable(name) + ": " + reason);
    ++left_out_;
  }
  void refuse(const std::string& name, const std::string& other) {
    tell(lade::printable(name) + " is the same field of a sample as " + lade::printable(other));
    ++refused_;
  }

  // Throws if anything was refused.
  void end() const {
    if (left_out_ > 0) tell("left out " + std::to_string(left_out_) + " files and directories");
    if (refused_ > 0)
      throw std::runtime_error("nothing is written: " + std::to_string(refused_) +
                               " files are fields that their samples have already");
  }

 private:
  static void tell(const std::string& line) {
    std::fprintf(stderr, "make_shards: %s\n", line.c_str());
  }

  std::size_t left_out_ = 0;
  std::size_t refused_ = 0;
};

static const char* why_passed_over(std::string_view name) {
  auto first = name.substr(0, name.find('/'));
  if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__"))
    return "readers pass over names like __this__";
  return key_of(name) == name ? "its name has no extension" : nullptr;
}

static bool leads_back(const std::filesystem::directory_entry& entry) {
  if (!entry.is_symlink()) return false;
  auto target = std::filesystem::canonical(entry.path());
  auto from = std::filesystem::canonical(entry.path().parent_path());
  return std::ranges::mismatch(target, from).in1 == target.end();
}

// Finds objects that a listing of files does not have.
static void find_unlisted(const std::string& root, findings& found) {
  using iterator = std::filesystem::recursive_directory_iterator;
  for (iterator at(root, std::filesystem::directory_options::follow_directory_symlink), end;
       at != end; ++at) {
    auto name = at->path().lexically_relative(root).string();
    auto type = at->status().type();
    bool is_directory = type == std::filesystem::file_type::directory;
    bool is_hidden = at->path().filename().string().starts_with('.');
    if (is_hidden)
      found.leave_out(name, "it is hidden");
    else if (!is_directory && std::filesystem::exists(at->status()) && !at->is_regular_file())
      found.leave_out(name, "it is no file");
    if (is_directory && (is_hidden || leads_back(*at))) at.disable_recursion_pending();
  }
}

static std::vector<std::string> names_below(const std::string& root, findings& found) {
  std::vector<std::string> names;
  for (auto& file : lade::io::files(root).list_all()) {
    auto name = std::filesystem::path(file.key()).lexically_relative(root).string();
    if (auto* reason = why_passed_over(name))
      found.leave_out(name, reason);
    else
      names.push_back(std::move(name));
  }
  std::ranges::sort(names, {}, [](const std::string& name) {
    return std::pair(key_of(name), std::string_view(name));
  });
  return names;
}

static std::string field_of(std::string_view name) {
  std::string field(name.substr(key_of(name).size()));
  for (auto& c : field)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return field;
}

// `names`: sorted by their keys. Returns how many samples they are.
static std::size_t check_samples(const std::vector<std::string>& names, findings& found) {
  std::map<std::string, std::string> fields;  // of one sample, and the first file that is each
  std::string_view key;
  std::size_t samples = 0;
  for (auto& name : names) {
    if (samples == 0 || key_of(name) != key) {
      fields.clear();
      key = key_of(name);
      ++samples;
    }
    auto [other, is_new] = fields.emplace(field_of(name), name);
    if (!is_new) found.refuse(name, other->second);
  }
  return samples;
}

static std::string numbered(const std::string& prefix, std::size_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "-%06zu.tar", number);
  return prefix + text;
}

// A new archive begins with the first sample that would begin behind `bytes`.
static std::vector<shard_plan> plan(const std::string& root, std::vector<std::string> names,
                                    const std::string& prefix, std::uint64_t bytes) {
  std::vector<shard_plan> plans;
  std::string last_key;
  for (auto& name : names) {
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

static lade::task<std::string> write_shard(shard_plan plan) {
  lade::io::tar_writer writer(plan.path);
  for (auto& name : plan.names) {
    auto content = co_await lade::io::read_file(plan.root + "/" + name);
    writer.add(name, content.bytes());
  }
  writer.finish();
  co_return plan.path + ": " + std::to_string(plan.names.size()) + " files, " +
      std::to_string(writer.bytes()) + " bytes";
}

static void make_shards(const std::string& root, const std::string& prefix, std::uint64_t bytes) {
  findings found;
  find_unlisted(root, found);
  auto names = names_below(root, found);
  auto files = names.size();
  auto samples = check_samples(names, found);
  found.end();
  lade::runtime runtime;
  auto plans = plan(root, std::move(names), prefix, bytes);
  auto written = lade::from(std::move(plans)) | lade::map(write_shard, {.concurrency = 8});
  for (auto& line : runtime.run(written)) std::printf("%s\n", line.c_str());
  std::printf("%zu samples of %zu files\n", samples, files);
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
