#include "resolver.hpp"

#include <lade/error.hpp>
#include <lade/io/http/error.hpp>

#include <array>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace lade::io::http {

[[gnu::weak]] int look_up_host(const char* host, addrinfo** found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  return getaddrinfo(host, nullptr, &hints, found);
}

static std::string text_of_addresses(const addrinfo* first) {
  std::string text;
  for (auto* each = first; each; each = each->ai_next) {
    std::array<char, NI_MAXHOST> address{};
    if (getnameinfo(each->ai_addr, each->ai_addrlen, address.data(), address.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
      continue;
    bool is_v6 = each->ai_family == AF_INET6;
    text += (text.empty() ? "" : ",") + std::string(is_v6 ? "[" : "") + address.data() +
            (is_v6 ? "]" : "");
  }
  return text;
}

resolver& resolver::of_process() {
  static auto* const only = new resolver({});
  return *only;
}

// The kept answer of a host, or the pending one of a lookup in progress.
std::shared_ptr<resolver::answer> resolver::query(const std::string& host) {
  std::lock_guard lock(mutex_);
  auto found = answers_.find(host);
  auto last = found == answers_.end() ? nullptr : found->second;
  auto now = clock::now();
  if (last && (now < last->fresh_until || last->is_refreshing)) return last;
  bool is_kept = last && now < last->kept_until;
  auto pending = std::make_shared<answer>();
  try {
    look_up_on_thread(host, pending);
  } catch (const error&) {
    if (is_kept) return last;
    throw;
  }
  if (is_kept) {
    last->is_refreshing = true;
    return last;
  }
  forget_old_answers();
  answers_[host] = pending;
  return pending;
}

// Call with the mutex held, like the functions up to forget_old_answers().
void resolver::look_up_on_thread(const std::string& host, const std::shared_ptr<answer>& into) {
  if (threads_ == most_threads)
    throw error(errc::limit_exceeded, "resolve " + host,
                fmt::format("no answer yet for {} other hosts", threads_));
  try {
    std::thread([this, host, into] { look_up(host, into); }).detach();
  } catch (const std::system_error& refusal) {
    throw error(refusal.code(), "resolve " + host, "no thread for it");
  }
  ++threads_;
}

// Does not keep a failure. An answer changes only when the host is looked up again.
void resolver::keep(const std::string& host, const std::shared_ptr<answer>& made) noexcept {
  auto now = clock::now();
  made->fresh_until = made->failure == 0 ? now + lifetimes_.fresh : clock::time_point();
  if (made->failure == 0) made->kept_until = now + lifetimes_.kept;
  auto found = answers_.find(host);
  if (found == answers_.end() || found->second == made) return;
  if (made->failure == 0) {
    found->second = made;
  } else {
    found->second->fresh_until = now + lifetimes_.fresh;
    found->second->is_refreshing = false;
  }
}

// Bounds the number of answers, for a crawl of many hosts.
void resolver::forget_old_answers() {
  constexpr std::size_t many = 4096;
  if (answers_.size() < many) return;
  std::erase_if(answers_,
                [now = clock::now()](auto& kept) { return kept.second->fresh_until < now; });
}

// Runs on a dedicated thread.
void resolver::look_up(const std::string& host, const std::shared_ptr<answer>& into) noexcept {
  addrinfo* found = nullptr;
  int failure = look_up_host(host.c_str(), &found);
  try {
    if (failure == 0) into->addresses = text_of_addresses(found);
    if (failure == 0 && into->addresses.empty()) failure = EAI_NONAME;
  } catch (const std::bad_alloc&) {
    failure = EAI_MEMORY;
  }
  if (found) freeaddrinfo(found);
  into->failure = failure;
  {
    std::lock_guard lock(mutex_);
    --threads_;
    keep(host, into);
  }
  into->resolved.set();
}

task<std::string> resolver::resolve(std::string host) {
  auto pending = query(host);
  co_await pending->resolved;
  if (pending->failure == 0) co_return pending->addresses;
  throw error(std::error_code(CURLE_COULDNT_RESOLVE_HOST, curl_category()), "resolve " + host,
              gai_strerror(pending->failure));
}

}  // namespace lade::io::http
