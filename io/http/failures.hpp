// What attempts fail of, in words, and whether another is worth it.

#pragma once

#include "transfer.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace lade::io::http {

struct failed_attempt {
  std::error_code code;
  std::string reason;
  bool again = false;  // whether another attempt may succeed
  std::optional<std::chrono::seconds> retry_after = {};
};

// "get https://host/a".
std::string describe_request(std::string_view method, std::string_view url);

// Why a body is refused that is longer than max_bytes.
std::string longer_than(std::uint64_t most);

// What a finished transfer that is no success comes to.
failed_attempt failure_of(const transfer& ended);

// Whether a request is signed otherwise in another attempt, which may be accepted.
bool is_renewed(const request& request, const failed_attempt& refusal, request::time start);

failed_attempt changed_object();

// Why a response with a body is not of the entity that has this strong tag and so many bytes, if it
// is not: servers may ignore If-Match. An empty tag and no length may be any entity's.
std::optional<failed_attempt> refusal_of_entity(const response_head& head, std::string_view etag,
                                                std::optional<std::uint64_t> bytes = {});

// The pause that a server asks for: in seconds, or until a date, counted from the header Date, or
// from `now` where there is none (RFC 9110, section 10.2.3). Nothing if it is neither.
std::optional<std::chrono::seconds> retry_after(const response_head& head,
                                                std::chrono::system_clock::time_point now) noexcept;

}  // namespace lade::io::http
