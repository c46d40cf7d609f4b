// Bytes of files, written by hand.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../support/buffer_of.hpp"

namespace lade::test {

// A number as it is in memory: low byte first.
template <class T>
std::string little(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// A text as a stream of buffers with so many bytes each.
inline async_generator<buffer> stream_of(std::string text, std::size_t chunk_bytes = 1 << 20) {
  for (std::size_t at = 0; at < text.size(); at += chunk_bytes) {
    auto chunk = buffer_of(std::string_view(text).substr(at, chunk_bytes));
    co_yield chunk;
  }
}

inline std::string random_bytes(std::mt19937_64& random, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (auto& c : text) c = static_cast<char>(random());
  return text;
}

inline task<std::vector<std::string>> texts_of(async_generator<buffer> from) {
  std::vector<std::string> texts;
  while (auto* text = co_await from.next()) texts.emplace_back(text->text());
  co_return texts;
}

template <class T>
task<std::vector<T>> collect(async_generator<T> from) {
  std::vector<T> items;
  while (auto* item = co_await from.next()) items.push_back(std::move(*item));
  co_return items;
}

}  // namespace lade::test
