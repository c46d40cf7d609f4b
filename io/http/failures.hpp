// Failures of attempts: their texts, and whether to retry.

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

// The reason for refusing a body longer than max_bytes.
std::string longer_than(std::uint64_t most);

// The failure of a transfer that ended without success.
failed_attempt failure_of(const transfer& ended);

// Whether another attempt would have a new signature or new credentials.
bool is_renewed(const request& request, const failed_attempt& refusal, request::time start);

failed_attempt changed_object();

// The failure of a response whose entity tag is not `etag`, or whose object does not have `bytes`
// bytes: servers may ignore If-Match. Empty if both match. An empty tag, and no length, match any.
std::optional<failed_attempt> refusal_of_entity(const response_head& head, std::string_view etag,
                                                std::optional<std::uint64_t> bytes = {});

// The header Retry-After: seconds, or a date counted from the header Date, or from `now` without
// one (RFC 9110, section 10.2.3). Empty if it is neither.
std::optional<std::chrono::seconds> retry_after(const response_head& head,
                                                std::chrono::system_clock::time_point now) noexcept;

}  // namespace lade::io::http
