// Records of CSV (RFC 4180).

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

// The end of the first record of a text, after its "\n"; npos if the text has no complete record.
std::size_t csv_record_end(std::string_view text) noexcept;

// Parses the cells of one record, which may end with "\n" or "\r\n". Throws error(invalid_data)
// naming `name` and the line for misplaced quotes.
std::vector<std::string> parse_csv_record(std::string_view record, std::string_view name,
                                          std::uint64_t line);

}  // namespace lade::io
