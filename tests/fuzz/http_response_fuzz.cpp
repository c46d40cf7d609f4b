// Reads any bytes as the status and the headers of an HTTP response, follows its redirect, and
// takes them for the words of a refusal.

#include "../../io/http/checksums.hpp"
#include "../../io/http/escapes.hpp"
#include "../../io/http/failures.hpp"
#include "../../io/http/origin.hpp"
#include "../../io/http/ranges.hpp"

#include <lade/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

using namespace lade::io::http;

static std::string_view next_line(std::string_view& text) {
  auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

static response_head parse(std::string_view text) {
  response_head head;
  for (char c : next_line(text).substr(0, 3)) head.status = 10 * head.status + (c & 7);
  while (!text.empty()) {
    auto line = next_line(text);
    auto name = line.substr(0, line.find(':'));
    auto value = line.substr(std::min(line.size(), name.size() + 1));
    head.headers.emplace_back(without_blanks(name), without_blanks(value));
  }
  return head;
}

// What has no escapes says itself, and the places of the others only grow.
static void check_escapes(std::string_view text) {
  if (cut_escape_bytes(text) > text.size()) std::abort();
  auto said = unescape(text);
  auto& places = said.offsets;
  bool grows = std::ranges::adjacent_find(places, std::greater_equal()) == places.end();
  if (places.size() != said.plain.size() + 1 || places.back() != text.size() || !grows)
    std::abort();
  if (text.find_first_of("%\\&") == text.npos && said.plain != text) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_escapes(text);
  auto head = parse(text);
  for (const byte_range asked : {byte_range{5, 7}, byte_range{5}, byte_range{0, 1}}) {
    auto bytes = part_bytes(head, asked);
    if (bytes && (*bytes == 0 || *bytes > asked.bytes)) std::abort();
  }
  if (auto checksum = object_checksum::stated_by(head)) {
    checksum->update(std::as_bytes(std::span("123456789", 9)));
    (void)checksum->mismatch();
  }
  auto pause = retry_after(head, std::chrono::system_clock::from_time_t(784111777));
  if (pause && pause->count() < 0) std::abort();
  auto next = redirected("http://hub.example/a", std::string(head.value("location")));
  try {
    if (!next.empty() && origin(next).host.empty()) std::abort();
  } catch (const lade::error&) {}
  return 0;
}
