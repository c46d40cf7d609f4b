// The members of a JSON object as fields of a sample.

#pragma once

#include <lade/detail/common/json_reader.hpp>
#include <lade/field.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade::io {

using detail::json_reader;

// The next value as a field; nothing if it is null.
std::optional<field> read_json_field(json_reader& json, const std::string& name);

// The members of the object that a line is. Throws error(limit_exceeded) for more than
// `max_fields`.
std::vector<field> parse_json_fields(std::string_view line, std::string_view name,
                                     std::uint64_t number, std::size_t max_fields);

}  // namespace lade::io
