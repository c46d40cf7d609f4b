#include <lade/error.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/store.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace lade {
namespace detail {

enum class entry_kind : std::uint8_t { file, directory, other };

static entry_kind kind_of_mode(mode_t mode) {
  if (S_ISDIR(mode)) return entry_kind::directory;
  return S_ISREG(mode) ? entry_kind::file : entry_kind::other;
}

// Follows links. A dangling link counts as a file.
static entry_kind kind_of_entry(int directory, const dirent& entry) {
  if (entry.d_type == DT_REG) return entry_kind::file;
  if (entry.d_type == DT_DIR) return entry_kind::directory;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return entry_kind::other;
  struct ::stat found;
  if (fstatat(directory, entry.d_name, &found, 0) != 0) return entry_kind::file;
  return kind_of_mode(found.st_mode);
}

// An open directory.
class directory_reader {
 public:
  explicit directory_reader(const std::string& path)
      : path_(path), stream_(opendir(path.c_str()), closedir) {
    if (!stream_ || fstat(dirfd(stream_.get()), &identity_) != 0) raise(errno, "list " + path_);
  }

  // The next entry; null at the end.
  const dirent* next() {
    while (true) {
      errno = 0;
      auto* entry = readdir(stream_.get());
      if (!entry && errno != 0) raise(errno, "list " + path_);
      if (!entry) return nullptr;
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") return entry;
    }
  }

  entry_kind kind_of(const dirent& entry) const {
    return kind_of_entry(dirfd(stream_.get()), entry);
  }
  const struct ::stat& identity() const noexcept { return identity_; }

 private:
  const std::string& path_;
  std::unique_ptr<DIR, int (*)(DIR*)> stream_;
  struct ::stat identity_{};
};

}  // namespace detail

namespace io {

using detail::directory_reader;
using detail::entry_kind;

static std::string path_below(const std::string& root, const std::string& relative) {
  return root.ends_with('/') ? root + relative : root + '/' + relative;
}

// Walks a tree depth first. Names in a directory are sorted, with a slash appended to directories.
// So whole paths are in order, too.
class files::walk {
 public:
  explicit walk(const files& wanted_files) : what_(wanted_files) {
    enter("", what_.pattern_.start());
  }

  // The path of the next file, relative to the root.
  std::optional<std::string> next() {
    auto path = step();
    if (!path && !found_ && !what_.may_be_empty_)
      throw error(errc::invalid_argument, "list " + what_.root_,
                  "no file matches " + what_.pattern_text_);
    found_ = found_ || path;
    return path;
  }

 private:
  struct level {
    std::string path;  // relative to the root; ends with a slash unless it is the root
    glob::position at;
    std::vector<std::string> names;
    std::size_t next;
    dev_t device;
    ino_t inode;
  };

  std::optional<std::string> step() {
    while (!levels_.empty()) {
      auto& deepest = levels_.back();
      if (deepest.next == deepest.names.size()) {
        levels_.pop_back();
        continue;
      }
      auto& name = deepest.names[deepest.next++];
      auto path = deepest.path + name;
      if (!name.ends_with('/')) return path;
      name.pop_back();
      enter(path, what_.pattern_.enter(deepest.at, name));
    }
    return std::nullopt;
  }

  // Enters a directory. Below the root, unreadable directories may be skipped, by the policy.
  void enter(const std::string& path, const glob::position& at) {
    if (!what_.unreadable_ || path.empty()) return read(path, at);
    try {
      read(path, at);
    } catch (const error& failure) {
      what_.unreadable_->emplace_back(failure.what());
    }
  }

  void read(const std::string& path, const glob::position& at) {
    auto full_path = path.empty() ? what_.root_ : path_below(what_.root_, path);
    directory_reader reader(full_path);
    auto& identity = reader.identity();
    if (inside_of(identity.st_dev, identity.st_ino)) return;
    std::vector<std::string> names;
    while (auto* entry = reader.next()) add_name(reader, *entry, at, names);
    std::ranges::sort(names);
    levels_.push_back({path, at, std::move(names), 0, identity.st_dev, identity.st_ino});
  }

  void add_name(const directory_reader& reader, const dirent& entry, const glob::position& at,
                std::vector<std::string>& names) const {
    auto entered = what_.pattern_.enter(at, entry.d_name);
    if (!entered.matched() && !entered.may_match_below()) return;
    auto kind = reader.kind_of(entry);
    if (kind == entry_kind::file && entered.matched()) names.emplace_back(entry.d_name);
    if (kind == entry_kind::directory && entered.may_match_below())
      names.push_back(std::string(entry.d_name) + '/');
  }

  bool inside_of(dev_t device, ino_t inode) const {
    return std::ranges::any_of(levels_,
                               [=](auto& l) { return l.device == device && l.inode == inode; });
  }

  const files& what_;
  std::vector<level> levels_;  // the directories that the walk is in
  bool found_ = false;         // whether a file was found
};

files::files(std::string root, std::string_view pattern, files_options options)
    : files(pattern.empty() ? split_pattern(std::move(root))
                            : rooted_pattern{std::move(root), std::string(pattern)},
            options) {}

files::files(rooted_pattern where, const files_options& options)
    : root_(local_path(std::move(where.root))),
      pattern_text_(std::move(where.pattern)),
      pattern_(pattern_text_, options.ignore_case),
      may_be_empty_(options.may_be_empty),
      compare_sizes_(options.compare_sizes),
      unreadable_(options.unreadable) {}

std::string files::identity_of(const sample& file) const {
  auto prefix = path_below(root_, "");
  bool is_below = file.key().starts_with(prefix);
  auto identity = file.key().substr(is_below ? prefix.size() : 0);
  if (!is_below || !pattern_.matches(identity))
    throw error(errc::invalid_argument, "list " + without_secrets(root_),
                file.name() + " is not one of its files that match " + pattern_text_);
  if (!compare_sizes_) return identity;
  if (auto* size = file.find_field("size")) return fmt::format("{} {}", identity, size->integer());
  struct ::stat found;
  if (::stat(file.key().c_str(), &found) != 0) return identity + " unknown";
  return fmt::format("{} {}", identity, found.st_size);
}

void files::require_directory() const {
  if (scheme_of(root_).empty()) return;
  throw error(errc::unsupported, "list " + without_secrets(root_),
              "a store has to be waited for: await load_all()");
}

std::vector<std::string> files::directories() const {
  require_directory();
  directory_reader reader(root_);
  std::vector<std::string> names;
  while (auto* entry = reader.next())
    if (entry->d_name[0] != '.' && reader.kind_of(*entry) == entry_kind::directory)
      names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

// The sample of the file at `path` below `root`. Its label is the index of its first directory in
// `classes`.
static sample make_sample(const std::string& root, const std::string& path,
                          const std::vector<std::string>& classes) {
  auto label = sample::no_label;
  auto directory = std::string_view(path).substr(0, path.find('/'));
  auto place = std::ranges::lower_bound(classes, directory);
  if (place != classes.end() && *place == directory) label = place - classes.begin();
  return sample(path_below(root, path), label);
}

async_generator<sample> files::list_directory(files what, bool labelled) {
  auto classes = labelled ? what.directories() : std::vector<std::string>();
  walk tree(what);
  while (auto path = tree.next()) {
    auto found = make_sample(what.root_, *path, classes);
    co_yield std::move(found);
  }
}

// Sorts and removes duplicates.
static void sort_classes(std::vector<std::string>& classes) {
  std::ranges::sort(classes);
  const auto again = std::ranges::unique(classes);
  classes.erase(again.begin(), again.end());
}

// Adds the first directory of a path to the result of directories().
static void add_class(std::vector<std::string>& classes, std::string_view path) {
  auto slash = path.find('/');
  if (slash == std::string_view::npos || path.starts_with('.')) return;
  auto name = path.substr(0, slash);
  if (classes.empty() || classes.back() != name) classes.emplace_back(name);
}

// Lists the matching objects below the root, without labels. Adds the first directories of all
// objects to `classes`, and sorts them at the end.
async_generator<sample> files::list_objects(files what, std::vector<std::string>* classes) {
  auto prefix = path_below(what.root_, "");
  auto listed = find_store(what.root_);
  auto objects = listed->list(prefix);
  bool found_some = false;
  while (auto* object = co_await objects.next()) {
    if (!object->name.starts_with(prefix)) continue;
    auto path = object->name.substr(prefix.size());
    if (classes) add_class(*classes, path);
    if (path.empty() || path.ends_with('/') || !what.pattern_.matches(path)) continue;
    found_some = true;
    std::vector<field> fields{field("size", object->size_bytes)};
    if (!object->etag.empty()) fields.emplace_back("etag", object->etag);
    auto found = sample(object->name).with_fields(std::move(fields));
    co_yield std::move(found);
  }
  if (classes) sort_classes(*classes);
  if (!found_some && !what.may_be_empty_)
    throw error(errc::invalid_argument, "list " + without_secrets(what.root_),
                "no object matches " + what.pattern_text_);
}

task<std::vector<sample>> files::load_all(files what, bool labelled) {
  if (scheme_of(what.root_).empty()) co_return what.list_all(labelled);
  std::vector<sample> all;
  std::vector<std::string> classes;
  auto objects = list_objects(what, &classes);
  while (auto* object = co_await objects.next()) all.push_back(std::move(*object));
  if (!labelled) co_return all;
  auto prefix = path_below(what.root_, "").size();
  for (auto& each : all) {
    auto labelled_path = make_sample(what.root_, each.key().substr(prefix), classes);
    each = std::move(each).with_label(labelled_path.label());
  }
  co_return all;
}

async_generator<sample> files::list_store(files what, bool labelled) {
  if (!labelled) {
    auto objects = list_objects(std::move(what), nullptr);
    while (auto* object = co_await objects.next()) co_yield *object;
    co_return;
  }
  auto all = co_await load_all(std::move(what), true);
  for (auto& each : all) co_yield each;
}

async_generator<sample> files::list(files what, bool labelled) {
  if (scheme_of(what.root_).empty()) return list_directory(std::move(what), labelled);
  return list_store(std::move(what), labelled);
}

task<std::vector<std::string>> files::load_class_names(files what) {
  if (scheme_of(what.root_).empty()) co_return what.directories();
  std::vector<std::string> classes;
  auto objects = list_objects(std::move(what), &classes);
  while (co_await objects.next()) {}
  co_return classes;
}

std::vector<sample> files::list_all(bool labelled) const {
  require_directory();
  auto classes = labelled ? directories() : std::vector<std::string>();
  std::vector<sample> all;
  walk tree(*this);
  while (auto path = tree.next()) all.push_back(make_sample(root_, *path, classes));
  return all;
}

async_generator<sample> files::list() const { return list(*this, false); }
std::vector<sample> files::list_all() const { return list_all(false); }
task<std::vector<sample>> files::load_all() const { return load_all(*this, false); }

// Paths never contain "//", so the identity is unique.
std::string labelled_files::identity_of(const sample& file) const {
  return fmt::format("{}//{}", files_.identity_of(file), file.label());
}

std::vector<std::string> labelled_files::class_names() const { return files_.directories(); }
async_generator<sample> labelled_files::list() const { return files::list(files_, true); }
std::vector<sample> labelled_files::list_all() const { return files_.list_all(true); }
task<std::vector<sample>> labelled_files::load_all() const { return files::load_all(files_, true); }
task<std::vector<std::string>> labelled_files::load_class_names() const {
  return files::load_class_names(files_);
}

}  // namespace io
}  // namespace lade
