#include "transfer.hpp"

#include "ranges.hpp"

#include <lade/buffer_pool.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

namespace lade::io::http {

static char small_letter(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, small_letter, small_letter);
}

std::string_view header_value(const header_list& headers, std::string_view name) noexcept {
  for (auto& [each, value] : headers)
    if (equal_ignoring_case(each, name)) return value;
  return {};
}

std::optional<std::uint64_t> response_head::length() const noexcept {
  auto text = value("content-length");
  std::uint64_t bytes = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return bytes;
}

std::string_view without_blanks(std::string_view text) noexcept {
  auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// A status line starts another response. The previous one was informational (RFC 9110, 15.2), that
// of a proxy, or a request to authenticate.
std::size_t transfer::receive_header(std::string_view line) {
  last_byte_ = std::chrono::steady_clock::now();
  header_bytes_ += line.size();
  if (header_bytes_ > most_header_bytes) return 0;
  if (line.starts_with("HTTP/")) {
    head = {};
    head.headers.reserve(16);
    auto code = line.substr(std::min(line.find(' ') + 1, line.size())).substr(0, 3);
    std::from_chars(code.data(), code.data() + code.size(), head.status);
  } else if (auto colon = line.find(':'); colon != std::string_view::npos) {
    head.headers.emplace_back(without_blanks(line.substr(0, colon)),
                              without_blanks(line.substr(colon + 1)));
  } else if (without_blanks(line).empty()) {
    head.is_complete = true;
  }
  return line.size();
}

bool transfer::should_be_divided() const noexcept {
  auto length = head.length();
  return head.status == 200 && length && *length > max_undivided_bytes &&
         is_strong(head.value("etag")) &&
         equal_ignoring_case(head.value("accept-ranges"), "bytes") &&
         head.value("content-encoding").empty();
}

void transfer::begin_body() {
  auto length = head.value("content-encoding").empty() ? head.length() : std::nullopt;
  if (allocates_in && length && *length <= most_bytes) {
    if (auto taken = try_allocate(*allocates_in, static_cast<std::size_t>(*length))) {
      content = *std::move(taken);
      memory = content.bytes();
    }
  }
  if (share && !memory.empty() && share->try_acquire(memory.size())) destination = memory;
}

std::size_t transfer::receive_body(const char* data, std::size_t bytes) {
  last_byte_ = std::chrono::steady_clock::now();
  if (head.status >= 300) {
    constexpr std::size_t enough = 1024;
    refusal.append(data, std::min(bytes, enough - std::min(enough, refusal.size())));
    refused_bytes += bytes;
    return refused_bytes > most_refused ? 0 : bytes;
  }
  if (expected && !body_started_ && !part_bytes(head, *expected)) {
    misfits = true;
    return 0;
  }
  if (should_be_divided()) {
    is_divided = true;
    return 0;
  }
  if (!std::exchange(body_started_, true)) begin_body();
  if (bytes > destination.size() - filled) {
    needed = bytes;
    stage_ = stage::paused;
    engine_->stepped_.add(*this);
    return CURL_WRITEFUNC_PAUSE;
  }
  std::memcpy(destination.data() + filled, data, bytes);
  filled += bytes;
  return bytes;
}

// libcurl reports success for a connection that ends within the headers.
void transfer::require_good_head() noexcept {
  if (header_bytes_ > most_header_bytes) {
    result_ = CURLE_WEIRD_SERVER_REPLY;
    (void)snprintf(error_text_.data(), error_text_.size(), "more than %zu KiB of headers",
                   most_header_bytes >> 10);
  }
  if (result_ != CURLE_OK || head.is_complete) return;
  result_ = CURLE_PARTIAL_FILE;
  (void)snprintf(error_text_.data(), error_text_.size(), "the headers end too early");
}

std::size_t transfer::supply_body(char* into, std::size_t bytes) noexcept {
  last_byte_ = std::chrono::steady_clock::now();
  bytes = std::min(bytes, outgoing.size() - sent);
  if (bytes > 0) std::memcpy(into, outgoing.data() + sent, bytes);
  sent += bytes;
  return bytes;
}

void transfer::keep_authorizations(std::string_view sent_headers) {
  while (!sent_headers.empty()) {
    auto line = sent_headers.substr(0, sent_headers.find('\n'));
    sent_headers.remove_prefix(std::min(sent_headers.size(), line.size() + 1));
    auto name = line.substr(0, line.find(':'));
    bool is_kept = equal_ignoring_case(name, "authorization") ||
                   equal_ignoring_case(name, "proxy-authorization");
    if (is_kept) authorizations.append(line) += '\n';
  }
}

// libcurl is C: an exception must not pass through it.
void transfer::install() {
  using callback = std::size_t (*)(char*, std::size_t, std::size_t, void*);
  callback body = [](char* data, std::size_t, std::size_t bytes, void* self) -> std::size_t {
    try {
      return static_cast<transfer*>(self)->receive_body(data, bytes);
    } catch (const std::bad_alloc&) {
      return 0;
    }
  };
  callback header = [](char* data, std::size_t, std::size_t bytes, void* self) -> std::size_t {
    try {
      return static_cast<transfer*>(self)->receive_header({data, bytes});
    } catch (const std::bad_alloc&) {
      return 0;
    }
  };
  callback more = [](char* into, std::size_t size, std::size_t count, void* self) -> std::size_t {
    return static_cast<transfer*>(self)->supply_body(into, size * count);
  };
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_text_.data());
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_READFUNCTION, more);
  curl_easy_setopt(easy_, CURLOPT_READDATA, this);
  using seek = int (*)(void*, curl_off_t, int);
  seek rewind = [](void* self, curl_off_t offset, int) -> int {
    static_cast<transfer*>(self)->sent = static_cast<std::size_t>(offset);
    return CURL_SEEKFUNC_OK;
  };
  curl_easy_setopt(easy_, CURLOPT_SEEKFUNCTION, rewind);
  curl_easy_setopt(easy_, CURLOPT_SEEKDATA, this);
  using report = int (*)(CURL*, curl_infotype, char*, std::size_t, void*);
  report sent_header = [](CURL*, curl_infotype kind, char* text, std::size_t bytes, void* self) {
    try {
      if (kind == CURLINFO_HEADER_OUT)
        static_cast<transfer*>(self)->keep_authorizations({text, bytes});
    } catch (const std::bad_alloc&) {}
    return 0;
  };
  curl_easy_setopt(easy_, CURLOPT_DEBUGFUNCTION, sent_header);
  curl_easy_setopt(easy_, CURLOPT_DEBUGDATA, this);
  curl_easy_setopt(easy_, CURLOPT_VERBOSE, keeps_authorizations ? 1L : 0L);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETFUNCTION, &engine::on_open);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETDATA, engine_);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETFUNCTION, &engine::on_close);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETDATA, engine_);
}

}  // namespace lade::io::http
