#include "json_fields.hpp"
#include "line_reader.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/io/formats/json_lines.hpp>

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace lade {

namespace io {

static buffer without_carriage_return(buffer line) {
  return line.text().ends_with('\r') ? line.slice(0, line.size() - 1) : std::move(line);
}

void line_reader::keep(buffer part) {
  if (part.size() > max_line_bytes_ - bytes_)
    throw error(
        errc::limit_exceeded, "read " + name_,
        fmt::format("line {} is longer than max_line_bytes, {}", number_ + 1, max_line_bytes_));
  bytes_ += part.size();
  if (!part.empty()) parts_.push_back(std::move(part));
}

// Joins the parts of a line to one buffer.
task<buffer> line_reader::join() {
  ++number_;
  auto parts = std::exchange(parts_, {});
  auto bytes = std::exchange(bytes_, 0);
  if (parts.empty()) co_return buffer();
  if (parts.size() == 1) co_return without_carriage_return(std::move(parts.front()));
  auto line = co_await allocate(bytes);
  auto* end = line.data();
  for (auto& part : parts) {
    std::memcpy(end, part.data(), part.size());
    end += part.size();
  }
  co_return without_carriage_return(std::move(line));
}

// Removes a line of `bytes` bytes and its line break from ready_, and returns it without the break.
buffer line_reader::take_line(std::size_t bytes) {
  auto line = ready_.slice(0, bytes);
  ready_ = ready_.slice(bytes + 1, ready_.size() - bytes - 1);
  return line;
}

std::optional<buffer> line_reader::try_next() {
  auto end = ready_.text().find('\n');
  if (!parts_.empty() || end == std::string_view::npos || end > max_line_bytes_)
    return std::nullopt;
  ++number_;
  return without_carriage_return(take_line(end));
}

task<std::optional<buffer>> line_reader::next() {
  for (;;) {
    auto end = ready_.text().find('\n');
    if (end != std::string_view::npos) {
      keep(take_line(end));
      co_return co_await join();
    }
    keep(std::exchange(ready_, {}));
    auto* chunk = co_await from_.next();
    if (chunk) {
      ready_ = std::move(*chunk);
      continue;
    }
    if (bytes_ == 0) co_return std::nullopt;
    co_return co_await join();
  }
}

async_generator<buffer> read_lines(async_generator<buffer> file, std::string name,
                                   line_options options) {
  line_reader from(std::move(file), std::move(name), options.max_line_bytes);
  for (;;) {
    auto line = from.try_next();
    if (!line) line = co_await from.next();
    if (!line) break;
    co_yield *line;
  }
}

std::optional<field> read_json_field(support::json_reader& json, const std::string& name) {
  switch (json.next()) {
    case support::json_reader::kind::string: return field(name, json.string());
    case support::json_reader::kind::boolean: return field(name, int{json.boolean()});
    case support::json_reader::kind::number:
      return std::visit([&](auto value) { return field(name, value); }, json.any_number());
    case support::json_reader::kind::null: json.null(); return std::nullopt;
    default: return field(name, std::string(json.skip()));
  }
}

std::vector<field> parse_json_fields(std::string_view line, std::string_view name,
                                     std::uint64_t number, std::size_t max_fields) {
  support::json_reader json(line, name, number);
  std::vector<field> fields;
  json.object([&](const std::string& member) {
    auto value = read_json_field(json, member);
    if (value) fields.push_back(std::move(*value));
    if (fields.size() > max_fields)
      throw error(errc::limit_exceeded, "read " + std::string(name),
                  fmt::format("line {} has more fields than max_fields, {}", number, max_fields));
  });
  json.end();
  return fields;
}

}  // namespace io

async_generator<sample> detail::read_json_line::operator()(sample file) const {
  return read(std::move(file), options_);
}

async_generator<sample> detail::read_json_line::read(sample file, io::json_line_options options) {
  auto content =
      io::decompress(io::stream(file.key()), file.name(), {.max_bytes = options.max_file_bytes});
  io::line_reader from(std::move(content), file.name(), options.max_line_bytes);
  for (;;) {
    auto line = from.try_next();
    if (!line) line = co_await from.next();
    if (!line) break;
    if (line->empty()) continue;
    auto fields =
        io::parse_json_fields(line->text(), file.name(), from.number(), options.max_fields);
    auto key = fmt::format("{}/{}", file.name(), from.number());
    auto made = sample(std::move(key), file.label()).with_fields(std::move(fields));
    co_yield made;
  }
}

}  // namespace lade
