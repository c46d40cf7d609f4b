#include <lade/error.hpp>
#include <lade/io/formats/tar_writer.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "new_file.hpp"
#include "tar_header.hpp"

namespace lade::io {

using detail::tar_block_bytes;

struct tar_writer::state {
  detail::new_file file;
  tar_writer_options options;
  std::uint64_t written = 0;
  bool is_finished = false;
};

static constexpr std::size_t tar_name_bytes = 100;
static constexpr std::size_t tar_prefix_bytes = 155;
static constexpr std::uint64_t most_ustar_bytes = (std::uint64_t{1} << 33) - 1;  // 11 octal digits

// The length of the part of a name that goes into the prefix field, without its slash; npos if the
// name does not fit.
static std::size_t prefix_of(std::string_view name) noexcept {
  if (name.size() <= tar_name_bytes) return 0;
  auto slash = name.rfind('/', tar_prefix_bytes);
  bool fits = slash != name.npos && slash > 0 && name.size() - slash - 1 <= tar_name_bytes;
  return fits ? slash : name.npos;
}

static void put_text(std::string& block, std::size_t at, std::string_view text) {
  block.replace(at, text.size(), text);
}

static void put_octal(std::string& block, std::size_t at, std::size_t bytes, std::uint64_t value) {
  for (auto i = at + bytes - 1; i-- > at; value >>= 3)
    block[i] = static_cast<char>('0' + (value & 7));
}

static std::string tar_header_block(std::string_view name, std::uint64_t bytes, char type,
                                    const tar_writer_options& options) {
  std::string block(tar_block_bytes, '\0');
  auto prefix = prefix_of(name);
  if (prefix == name.npos) {
    put_text(block, 0, name.substr(0, tar_name_bytes));
  } else {
    put_text(block, 345, name.substr(0, prefix));
    put_text(block, 0, name.substr(prefix > 0 ? prefix + 1 : 0));
  }
  put_octal(block, 100, 8, options.mode & 07777);
  put_octal(block, 108, 8, 0);
  put_octal(block, 116, 8, 0);
  put_octal(block, 124, 12, std::min(bytes, most_ustar_bytes));
  put_octal(block, 136, 12, static_cast<std::uint64_t>(options.modified));
  block[156] = type;
  put_text(block, 257, std::string_view("ustar\00000", 8));
  put_text(block, 148, "        ");
  std::uint64_t sum = 0;
  for (auto c : block) sum += static_cast<unsigned char>(c);
  put_octal(block, 148, 7, sum);
  block[154] = '\0';
  return block;
}

static std::string tar_record(std::string_view key, std::string_view value) {
  auto rest = fmt::format(" {}={}\n", key, value);
  auto bytes = rest.size() + 1;
  while (std::to_string(bytes).size() + rest.size() != bytes) ++bytes;
  return fmt::format("{}{}", bytes, rest);
}

// The pax records for values that do not fit into the ustar header; empty if all fit.
static std::string tar_records(std::string_view name, std::uint64_t bytes) {
  std::string records;
  if (prefix_of(name) == name.npos) records += tar_record("path", name);
  if (bytes > most_ustar_bytes) records += tar_record("size", std::to_string(bytes));
  return records;
}

static std::uint64_t require_padded(std::uint64_t bytes) {
  auto padded = detail::tar_padded(bytes);
  if (!padded) throw error(errc::limit_exceeded, "write an archive", "a file beyond 64 bits");
  return *padded;
}

std::uint64_t tar_bytes_of(std::string_view name, std::uint64_t content_bytes) {
  auto records = tar_records(name, content_bytes).size();
  return tar_block_bytes + require_padded(content_bytes) +
         (records > 0 ? tar_block_bytes + require_padded(records) : 0);
}

tar_writer::tar_writer(std::string path, const tar_writer_options& options) {
  constexpr std::int64_t most_seconds = (std::int64_t{1} << 33) - 1;
  if (options.modified < 0 || options.modified > most_seconds)
    throw error(errc::invalid_argument, "write " + path, "modified is out of range");
  state_ = std::make_unique<state>(detail::new_file(std::move(path)), options);
}

tar_writer::tar_writer(tar_writer&&) noexcept = default;
tar_writer::~tar_writer() = default;

static void write_padded(detail::new_file& file, std::span<const std::byte> content) {
  static constexpr std::byte zeros[tar_block_bytes] = {};
  file.write(content);
  auto rest = content.size() % tar_block_bytes;
  if (rest > 0) file.write(std::span(zeros).first(tar_block_bytes - rest));
}

static void write_text(detail::new_file& file, const std::string& text) {
  write_padded(file, std::as_bytes(std::span(text)));
}

void tar_writer::add(std::string_view name, std::span<const std::byte> content) {
  auto& file = state_->file;
  if (state_->is_finished || name.empty() || name.ends_with('/') || name.find('\0') != name.npos)
    throw error(errc::invalid_argument, "add a file to " + file.path(),
                state_->is_finished ? "it is finished"
                                    : fmt::format("no file can have the name \"{}\"", name));
  auto records = tar_records(name, content.size());
  if (!records.empty()) {
    write_text(file, tar_header_block("././@PaxHeader", records.size(), 'x', state_->options));
    write_text(file, records);
  }
  write_text(file, tar_header_block(name, content.size(), '0', state_->options));
  write_padded(file, content);
  state_->written += tar_bytes_of(name, content.size());
}

void tar_writer::add(std::string_view name, std::string_view content) {
  add(name, std::as_bytes(std::span(content)));
}

std::uint64_t tar_writer::bytes() const noexcept { return state_->written + 2 * tar_block_bytes; }

void tar_writer::finish() {
  if (std::exchange(state_->is_finished, true))
    throw error(errc::invalid_argument, "finish " + state_->file.path(), "it is finished");
  write_text(state_->file, std::string(2 * tar_block_bytes, '\0'));
  state_->file.publish();
}

}  // namespace lade::io
