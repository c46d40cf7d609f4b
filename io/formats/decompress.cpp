#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/task.hpp>
#include <lade/url.hpp>

#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "decoder.hpp"

namespace lade::io {

// Reads until `begin` has the bytes by which the format is recognised, or the stream ends. Joins
// chunks to one buffer if necessary.
static task<> read_magic(async_generator<buffer>& compressed, buffer& begin) {
  while (begin.size() < detail::magic_bytes) {
    auto* next = co_await compressed.next();
    if (!next) co_return;
    if (begin.empty()) {
      begin = std::move(*next);
      continue;
    }
    auto both = co_await allocate(begin.size() + next->size());
    std::memcpy(both.data(), begin.data(), begin.size());
    if (!next->empty()) std::memcpy(both.data() + begin.size(), next->data(), next->size());
    begin = std::move(both);
  }
}

// Fills `out` from the stream. `in`: bytes that were read and not decompressed. Returns the number
// of written bytes: fewer than the capacity only at the end.
static task<std::size_t> fill_decompressed(async_generator<buffer>& compressed,
                                           detail::decoder& from, buffer& in, const buffer& out,
                                           const std::string& name) {
  std::size_t done = 0;
  while (done < out.size()) {
    auto made = from.decode(in.bytes(), out.bytes().subspan(done));
    in = in.slice(made.read, in.size() - made.read);
    done += made.written;
    if (made.read > 0 || made.written > 0) continue;
    auto* next = co_await compressed.next();
    if (next) {
      in = std::move(*next);
      continue;
    }
    if (!from.may_end()) throw error(errc::invalid_data, "decompress " + name, "it is cut short");
    break;
  }
  co_return done;
}

static async_generator<buffer> decompress_stream(async_generator<buffer> compressed,
                                                 std::string name, decompress_options options) {
  buffer in;
  co_await read_magic(compressed, in);
  auto from = detail::make_decoder(in.text(), name, options);
  if (!from) {
    if (!in.empty()) co_yield in;
    in = {};
    while (auto* next = co_await compressed.next()) co_yield *next;
    co_return;
  }
  for (std::uint64_t total = 0;;) {
    auto out = co_await allocate(options.chunk_bytes);
    auto done = co_await fill_decompressed(compressed, *from, in, out, name);
    if (done > options.max_bytes - total)
      throw error(errc::limit_exceeded, "decompress " + name,
                  fmt::format("it expands to more than max_bytes, {}", options.max_bytes));
    total += done;
    bool ended = done < out.size();
    if (done > 0) {
      auto part = out.slice(0, done);
      out = {};
      co_yield part;
    }
    if (ended) co_return;
  }
}

async_generator<buffer> decompress(async_generator<buffer> compressed, std::string name,
                                   decompress_options options) {
  name = without_secrets(name);
  auto window = options.max_window_bytes;
  if (options.chunk_bytes == 0 || !std::has_single_bit(window) || window < 1024 ||
      window > std::size_t{1} << 31)
    throw error(errc::invalid_argument, "decompress " + name,
                "chunk_bytes must be at least 1, and max_window_bytes a power of two from 1 KiB to "
                "2 GiB");
  return decompress_stream(std::move(compressed), std::move(name), options);
}

}  // namespace lade::io
