// Reads settings of AWS: environment variables, small files, host names.

#pragma once

#include <lade/task.hpp>
#include <lade/this_context.hpp>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

namespace lade::io::http {

// The value of the first environment variable of `names` that is not empty; else empty.
std::string first_set(std::initializer_list<const char*> names);

// Reads a file, or a pipe, as a shell passes it. Returns nothing if it does not exist. Throws
// error(limit_exceeded) for more than 1 MiB.
task<std::optional<std::string>> read_settings(std::string path);

// Awaits work for many waiters, with memory outside of the budget. Otherwise the item that runs it
// could wait for memory that the other waiters hold.
template <class T>
task<T> without_budget(task<T> work) {
  auto execution = co_await this_context();
  execution.memory = nullptr;
  execution.claim = nullptr;
  co_return co_await with_context(execution, std::move(work));
}

// The host of one of Amazon's services, "s3" or "sts", in a region.
std::string amazon_host(const std::string& service, const std::string& region);

}  // namespace lade::io::http
