// Records of CSV (RFC 4180).

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

// Where the first record of a text ends, behind its "\n"; npos if the text has no whole record.
std::size_t csv_record_end(std::string_view text) noexcept;

// The cells of one record, which may end with "\n" or "\r\n". Throws error(invalid_data) that
// names `name` and the line for quotes that are not around or inside a quoted cell.
std::vector<std::string> parse_csv_record(std::string_view record, std::string_view name,
                                          std::uint64_t line);

}  // namespace lade::io
