// Byte ranges in requests and responses.

#pragma once

#include "transfer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lade::io::http {

// The range in the form of CURLOPT_RANGE: "5-11" or "5-".
std::string range_text(const byte_range& range);

// The rest of a range after `filled` bytes.
byte_range rest_of(const byte_range& range, std::size_t filled) noexcept;

// The length of the part that a response states, if it is the requested part: it starts at the
// requested offset, and ends at the requested end or the object's. Nothing for another part, or
// none.
std::optional<std::uint64_t> part_bytes(const response_head& head,
                                        const byte_range& requested) noexcept;

// Whether a response to a request for the bytes from `offset` on states that the object ends there.
bool ends_at(const response_head& head, std::uint64_t offset) noexcept;

// Whether a response to a request for a part states that the object is empty: 416, "bytes */0".
bool is_of_no_bytes(const response_head& head) noexcept;

// Whether an entity tag is strong: equal tags mean equal bytes (RFC 9110, section 8.8.1).
bool is_strong(std::string_view etag) noexcept;

// A strong entity tag without its quotes; empty for others.
std::string_view opaque_tag(std::string_view etag) noexcept;

// An entity tag of a store, without quotes, in the form for requests. Empty stays empty.
std::string with_quotes(const std::string& etag);

// The length of the whole object that a response states, even if the response is a part; nothing if
// it states none.
std::optional<std::uint64_t> object_bytes(const header_list& headers) noexcept;

}  // namespace lade::io::http
