#include "csv.hpp"
#include "json_fields.hpp"
#include "manifest_rows.hpp"

#include <algorithm>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/manifest.hpp>
#include <lade/io/store.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace lade {

namespace io {

// An HTTP URL without its query; other names unchanged, since keys of object stores may contain any
// character.
static std::string_view path_part(std::string_view name) noexcept {
  auto scheme = scheme_of(name);
  bool is_http = scheme == "http" || scheme == "https";
  return is_http ? name.substr(0, name.find_first_of("?#")) : name;
}

static manifest_format format_of(std::string_view name, manifest_format format) {
  if (format != manifest_format::automatic) return format;
  auto path = path_part(name);
  if (path.ends_with(".csv")) return manifest_format::csv;
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return manifest_format::json_lines;
  throw error(errc::invalid_argument, "list " + without_secrets(name),
              "a manifest must end with .csv, .jsonl or .ndjson, or its format must be set");
}

static bool is_in_store(std::string_view name) noexcept {
  auto scheme = scheme_of(name);
  return !scheme.empty() && scheme != "file";
}

// The prefix for relative names in a manifest behind a URL: the manifest's directory.
static std::string root_of(std::string_view name, std::string_view value) {
  if (!value.empty() || !is_in_store(name)) return std::string(value);
  auto path = path_part(name);
  return std::string(path.substr(0, path.rfind('/') + 1));
}

// Reads the rows of one manifest as samples.
class manifest::rows {
 public:
  explicit rows(manifest list)
      : manifest_(std::move(list)),
        name_(without_secrets(manifest_.path_)),
        from_(name_, manifest_.format_ == manifest_format::csv, manifest_.max_row_bytes_) {}

  // The buffer to which text is appended.
  manifest_rows& text() noexcept { return from_; }

  // Returns nothing if more text is needed, or at the end.
  std::optional<sample> next() {
    if (manifest_.format_ == manifest_format::csv && columns_.empty()) read_header();
    auto row = from_.next();
    if (!row) return std::nullopt;
    cells_ = {};
    if (manifest_.format_ == manifest_format::csv)
      read_csv(*row);
    else
      read_json(*row);
    return make();
  }

 private:
  enum class role : std::uint8_t { field, key, label, offset, length };

  static constexpr std::size_t max_columns = 4096;

  // The parsed cells of a row.
  struct cells {
    std::optional<std::string> key;
    std::optional<std::int64_t> label;
    std::optional<std::int64_t> offset;
    std::optional<std::int64_t> length;
    std::vector<field> fields;
  };

  [[noreturn]] void refuse(std::string_view reason) const {
    throw error(errc::invalid_data, "read " + name_,
                fmt::format("line {}: {}", from_.line(), reason));
  }

  role role_of(std::string_view name) const {
    bool is_key = manifest_.key_.empty() ? name == "path" || name == "url" || name == "key"
                                         : name == manifest_.key_;
    if (is_key) return role::key;
    if (name.empty()) return role::field;
    if (name == manifest_.label_) return role::label;
    if (name == manifest_.offset_) return role::offset;
    return name == manifest_.length_ ? role::length : role::field;
  }

  // Reads the columns. Exactly one must have the keys.
  void read_header() {
    auto row = from_.next();
    if (!row && !from_.ended()) return;
    if (!row) refuse("there is no line that names the columns");
    if (row->starts_with("\xef\xbb\xbf"))
      row->remove_prefix(3);  // the byte order mark that
                              // spreadsheets write
    columns_ = parse_csv_record(*row, name_, from_.line());
    if (columns_.size() > max_columns) refuse("more than 4096 columns");
    auto sorted = columns_;
    std::ranges::sort(sorted);
    auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) refuse(fmt::format("two columns are called \"{}\"", *twice));
    for (auto& name : columns_) roles_.push_back(role_of(name));
    if (std::count(roles_.begin(), roles_.end(), role::key) != 1)
      refuse("there must be one column " + key_names());
  }

  std::string key_names() const {
    return manifest_.key_.empty() ? R"("path", "url" or "key")" : '"' + manifest_.key_ + '"';
  }

  void read_csv(std::string_view row) {
    auto texts = parse_csv_record(row, name_, from_.line());
    if (texts.size() != columns_.size())
      refuse(fmt::format("{} cells; there are {} columns", texts.size(), columns_.size()));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (roles_[i] == role::field)
        cells_.fields.emplace_back(columns_[i], std::move(texts[i]));
      else if (!texts[i].empty())
        set(roles_[i], columns_[i], field(columns_[i], std::move(texts[i])));
    }
  }

  void read_json(std::string_view row) {
    support::json_reader json(row, name_, from_.line());
    json.object([&](const std::string& name) {
      auto value = read_json_field(json, name);
      if (!value) return;
      auto column_role = role_of(name);
      if (column_role != role::field) return set(column_role, name, *value);
      if (cells_.fields.size() == max_columns) refuse("more than 4096 fields");
      cells_.fields.push_back(std::move(*value));
    });
    json.end();
  }

  void set(role column_role, const std::string& name, const field& value) {
    switch (column_role) {
      case role::field: break;
      case role::key: set_key(name, value); break;
      case role::label: cells_.label = integer_of(name, value); break;
      case role::offset: cells_.offset = position_of(name, value); break;
      case role::length: cells_.length = position_of(name, value); break;
    }
  }

  void set_key(const std::string& name, const field& value) {
    if (value.type() != field::kind::text) refuse(fmt::format("\"{}\" is not text", name));
    if (cells_.key) refuse("there must be one member " + key_names());
    std::string key(value.text());
    bool whole = key.starts_with('/') || key.find("://") != key.npos || manifest_.root_.empty();
    if (!whole) key = manifest_.root_ + (manifest_.root_.ends_with('/') ? "" : "/") + key;
    cells_.key = std::move(key);
  }

  std::int64_t integer_of(const std::string& name, const field& value) const {
    if (value.type() == field::kind::integer) return value.integer();
    if (value.type() == field::kind::text) {
      auto text = value.text();
      std::int64_t number = 0;
      auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (failure == std::errc() && end == text.data() + text.size()) return number;
    }
    refuse(fmt::format("\"{}\" is not an integer of 64 bits", name));
  }

  std::int64_t position_of(const std::string& name, const field& value) const {
    auto number = integer_of(name, value);
    if (number < 0) refuse(fmt::format("\"{}\" is negative", name));
    return number;
  }

  sample make() {
    if (!cells_.key || cells_.key->empty()) refuse("there is no " + key_names());
    auto offset = cells_.offset.value_or(0);
    if (cells_.length.value_or(0) > std::numeric_limits<std::int64_t>::max() - offset)
      refuse("the offset and the length together have more than 63 bits");
    if (cells_.offset) cells_.fields.emplace_back("offset", *cells_.offset);
    if (cells_.length) cells_.fields.emplace_back("length", *cells_.length);
    auto made = sample(std::move(*cells_.key), cells_.label.value_or(sample::no_label));
    if (cells_.fields.empty()) return made;
    return std::move(made).with_fields(std::move(cells_.fields));
  }

  manifest manifest_;
  std::string name_;  // for errors
  manifest_rows from_;
  std::vector<std::string> columns_;
  std::vector<role> roles_;  // by column
  cells cells_;
};

manifest::manifest(std::string path, const manifest_options& options)
    : path_(std::move(path)),
      format_(format_of(path_, options.format)),
      key_(options.key),
      label_(options.label),
      offset_(options.offset),
      length_(options.length),
      root_(root_of(path_, options.root)),
      max_row_bytes_(options.max_row_bytes) {}

async_generator<sample> manifest::list() const { return list(*this); }

async_generator<sample> manifest::list(manifest what) {
  return is_in_store(what.path_) ? list_object(std::move(what)) : list_file(std::move(what));
}

async_generator<sample> manifest::list_file(manifest what) {
  manifest_file file(local_path(what.path_));
  rows from(std::move(what));
  while (true) {
    while (auto next = from.next()) co_yield *next;
    if (from.text().ended()) co_return;
    file.read_into(from.text());
  }
}

async_generator<sample> manifest::list_object(manifest what) {
  auto found = find_store(what.path_);
  auto chunks = found->stream(what.path_, {});
  rows from(std::move(what));
  while (auto* chunk = co_await chunks.next()) {
    from.text().append(chunk->text());
    while (auto next = from.next()) co_yield *next;
  }
  from.text().end();
  while (auto next = from.next()) co_yield *next;
}

std::vector<sample> manifest::list_all() const {
  if (is_in_store(path_))
    throw error(errc::unsupported, "list " + without_secrets(path_),
                "a store has to be waited for: await load_all()");
  std::vector<sample> samples;
  manifest_file file(local_path(path_));
  rows from(*this);
  while (true) {
    while (auto next = from.next()) samples.push_back(std::move(*next));
    if (from.text().ended()) return samples;
    file.read_into(from.text());
  }
}

task<std::vector<sample>> manifest::load_all() const { return load_all(*this); }

task<std::vector<sample>> manifest::load_all(manifest what) {
  if (!is_in_store(what.path_)) co_return what.list_all();
  std::vector<sample> samples;
  auto listed = list_object(std::move(what));
  while (auto* next = co_await listed.next()) samples.push_back(std::move(*next));
  co_return samples;
}

// The text of an integer field; empty if the sample has no such field.
static std::string position_text(const sample& listed, std::string_view name) {
  auto* found = listed.find_field(name);
  bool is_there = found && found->type() == field::kind::integer;
  return is_there ? std::to_string(found->integer()) : std::string();
}

std::string manifest::identity_of(const sample& listed) const {
  auto& key = listed.key();
  return fmt::format("{} {}+{}", scheme_of(key).empty() ? key : without_signature(key),
                     position_text(listed, "offset"), position_text(listed, "length"));
}

// The value of an integer field; empty if the sample has no such field.
static std::optional<std::uint64_t> range_field(const sample& from, std::string_view name) {
  auto* found = from.find_field(name);
  if (!found) return std::nullopt;
  if (found->type() != field::kind::integer || found->integer() < 0)
    throw error(errc::invalid_argument, "read " + from.name(),
                fmt::format("its {} is not an integer from 0 on", name));
  return static_cast<std::uint64_t>(found->integer());
}

}  // namespace io

task<sample> detail::read_range::operator()(sample from) const {
  auto offset = io::range_field(from, "offset").value_or(0);
  auto length = io::range_field(from, "length");
  auto file = co_await io::open_reader(from.key());
  auto size = file->size();
  if (!length && offset > size)
    throw error(errc::invalid_data, "read " + from.name(),
                fmt::format("it has {} bytes, and begins at {}", size, offset));
  auto bytes = co_await file->read_at(offset, length ? *length : size - offset);
  co_return std::move(from).with_data(std::move(bytes));
}

}  // namespace lade
