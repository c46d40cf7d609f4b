#include "csv.hpp"

#include <lade/error.hpp>

#include <fmt/format.h>

namespace lade::io {

std::size_t csv_record_end(std::string_view text) noexcept {
  bool quoted = false;
  for (auto at = text.find_first_of("\"\n"); at != text.npos;
       at = text.find_first_of("\"\n", at + 1)) {
    if (text[at] == '"')
      quoted = !quoted;
    else if (!quoted)
      return at + 1;
  }
  return text.npos;
}

[[noreturn]] static void refuse_csv(std::string_view name, std::uint64_t line,
                                    std::string_view reason) {
  throw error(errc::invalid_data, "read " + std::string(name),
              fmt::format("line {}: {}", line, reason));
}

// Removes a quoted cell from the front of a record, including the closing quote, and returns it.
static std::string take_quoted(std::string_view& record, std::string_view name,
                               std::uint64_t line) {
  std::string cell;
  for (record.remove_prefix(1);;) {
    auto end = record.find('"');
    if (end == record.npos) refuse_csv(name, line, "a quoted cell without an end");
    cell += record.substr(0, end);
    record.remove_prefix(end + 1);
    if (!record.starts_with('"')) return cell;
    cell += '"';
    record.remove_prefix(1);
  }
}

static std::string take_plain(std::string_view& record, std::string_view name, std::uint64_t line) {
  auto cell = record.substr(0, record.find(','));
  if (cell.find_first_of("\"\r\n") != cell.npos)
    refuse_csv(name, line, "a quote or an end of line in a cell without quotes");
  record.remove_prefix(cell.size());
  return std::string(cell);
}

std::vector<std::string> parse_csv_record(std::string_view record, std::string_view name,
                                          std::uint64_t line) {
  if (record.ends_with('\n')) record.remove_suffix(1);
  if (record.ends_with('\r')) record.remove_suffix(1);
  std::vector<std::string> cells;
  for (;;) {
    cells.push_back(record.starts_with('"') ? take_quoted(record, name, line)
                                            : take_plain(record, name, line));
    if (record.empty()) return cells;
    if (!record.starts_with(',')) refuse_csv(name, line, "text after a quoted cell");
    record.remove_prefix(1);
  }
}

}  // namespace lade::io
