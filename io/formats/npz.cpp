#include "npy_header.hpp"

#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/npz.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace lade::io {

static constexpr std::string_view npy_suffix = ".npy";

// The field that a member becomes.
static std::string npz_name(const zip_member& member) {
  auto name = member.name();
  if (name.ends_with(npy_suffix)) name.resize(name.size() - npy_suffix.size());
  return name;
}

static void require_npz(const zip_archive& archive, const zip_options& options) {
  std::uint64_t rest = options.max_bytes;
  std::vector<std::string> names;
  for (auto& member : archive.members()) {
    names.push_back(npz_name(member));
    if (member.method() == zip_method::stored) continue;
    if (member.size() > rest)
      throw error(
          errc::limit_exceeded, "read " + archive.name(),
          "its compressed arrays have more than max_bytes, " + std::to_string(options.max_bytes));
    rest -= member.size();
  }
  std::ranges::sort(names);
  auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end())
    throw error(errc::invalid_data, "read " + archive.name(), "two arrays are called " + *twice);
}

task<std::vector<field>> read_npz(std::shared_ptr<const byte_reader> from, zip_options options) {
  auto archive = co_await open_zip(std::move(from), options);
  require_npz(archive, options);
  std::vector<field> fields;
  for (auto& member : archive.members()) {
    if (member.is_directory()) continue;
    auto content = co_await archive.read(member);
    if (!member.name().ends_with(npy_suffix)) {
      fields.emplace_back(member.name(), std::move(content));
      continue;
    }
    auto array = co_await load_npy(std::move(content), archive.name() + "/" + member.name());
    fields.emplace_back(npz_name(member), std::move(array));
  }
  co_return fields;
}

// Small files are read at once, and objects behind URLs, whose parts are then read in parallel. Of
// large files, each array is read by itself, which aligns it.
task<std::vector<field>> read_npz(std::string path, zip_options options) {
  constexpr std::uint64_t small = std::uint64_t{256} << 10;
  if (!scheme_of(path).empty()) {
    auto content = co_await read_file(path);
    co_return co_await read_npz(
        std::make_shared<const memory_reader>(std::move(content), without_secrets(path)), options);
  }
  auto from = co_await open_reader(path);
  auto size = from->size();
  if (size <= small) {
    auto content = co_await from->read_at(0, static_cast<std::size_t>(size));
    from = std::make_shared<memory_reader>(std::move(content), std::move(path));
  }
  co_return co_await read_npz(std::move(from), options);
}

task<sample> decode_npz::operator()(sample from) const {
  std::shared_ptr<const byte_reader> content =
      std::make_shared<memory_reader>(from.data(), from.name());
  auto arrays = co_await read_npz(std::move(content), options_);
  std::vector<field> fields(from.fields().begin(), from.fields().end());
  std::ranges::move(arrays, std::back_inserter(fields));
  co_return std::move(from).without_data().with_fields(std::move(fields));
}

}  // namespace lade::io
