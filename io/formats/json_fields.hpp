// Reads the members of a JSON object as fields of a sample.

#pragma once

#include <lade/field.hpp>
#include <lade/support/json_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

using support::json_reader;

// Reads the next value as a field; returns nothing for null.
std::optional<field> read_json_field(json_reader& json, const std::string& name);

// Parses a line with one object. Throws error(limit_exceeded) for more than `max_fields` members.
std::vector<field> parse_json_fields(std::string_view line, std::string_view name,
                                     std::uint64_t number, std::size_t max_fields);

}  // namespace lade::io
