// Reads any bytes as a compressed stream, in pieces and chunks of several sizes, and as what the
// beginning of a gzip member and of a Zstandard frame is followed by.

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

using namespace lade;

static constexpr std::size_t most = 1 << 20;

static async_generator<buffer> pieces_of(std::string_view bytes, std::size_t piece_bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    auto part = bytes.substr(at, piece_bytes);
    buffer piece(part.size());
    std::memcpy(piece.data(), part.data(), part.size());
    co_yield piece;
  }
}

static task<std::string> joined(async_generator<buffer> chunks, std::size_t chunk_bytes) {
  std::string all;
  while (auto* chunk = co_await chunks.next()) {
    if (chunk->empty() || chunk->size() > chunk_bytes) std::abort();
    all += chunk->text();
  }
  co_return all;
}

static bool is_expected(const error& refused) {
  return refused.code() == errc::invalid_data || refused.code() == errc::limit_exceeded;
}

// The content, or nothing for a stream that is refused.
static std::optional<std::string> content_of(std::string_view bytes, std::size_t piece_bytes,
                                             std::size_t chunk_bytes, std::uint64_t max_bytes) {
  try {
    auto chunks = io::decompress(pieces_of(bytes, piece_bytes), "a",
                                 {.max_bytes = max_bytes,
                                  .max_window_bytes = std::size_t{1} << 27,
                                  .chunk_bytes = chunk_bytes});
    return sync_wait(joined(std::move(chunks), std::max(chunk_bytes, piece_bytes)));
  } catch (const error& refused) {
    if (!is_expected(refused)) std::abort();
    return std::nullopt;
  }
}

// How a stream is cut does not matter, and max_bytes is exact.
static void read(std::string_view bytes) {
  auto whole = content_of(bytes, most, most, most);
  if (content_of(bytes, 700, 300, most) != whole) std::abort();
  if (bytes.size() < 2000 && content_of(bytes, 1, 7000, most) != whole) std::abort();
  bool is_compressed = whole && *whole != bytes;
  if (!is_compressed || whole->empty()) return;
  if (content_of(bytes, most, 100, whole->size()) != whole) std::abort();
  if (content_of(bytes, most, 100, whole->size() - 1)) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  read(std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + bytes);
  read("\x28\xb5\x2f\xfd" + bytes);
  return 0;
}
