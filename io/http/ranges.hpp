// The parts of objects that requests ask for, and that responses say to be.

#pragma once

#include "transfer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lade::io::http {

// "5-11", or "5-": how CURLOPT_RANGE takes it.
std::string range_text(const byte_range& range);

// The part that is left to ask for.
byte_range rest_of(const byte_range& range, std::size_t filled) noexcept;

// How long the part is that a response says to be, if that is the one that was asked for: it begins
// where it should, and ends there or with the object. Nothing for another part, or none.
std::optional<std::uint64_t> part_bytes(const response_head& head,
                                        const byte_range& requested) noexcept;

// Whether a response to a request for the bytes from `offset` on says that the object ends there.
bool ends_at(const response_head& head, std::uint64_t offset) noexcept;

// Whether a response to a request for a part says that the object has no bytes: 416, "bytes */0".
bool is_of_no_bytes(const response_head& head) noexcept;

// Whether an entity tag stands for the same bytes (RFC 9110, section 8.8.1).
bool is_strong(std::string_view etag) noexcept;

// The entity tag of a request: one as stores keep it, in quotes. Empty stays empty.
std::string with_quotes(const std::string& etag);

// The length of the whole object that a response says, also where the response is a part of it;
// nothing if it does not.
std::optional<std::uint64_t> object_bytes(const header_list& headers) noexcept;

}  // namespace lade::io::http
