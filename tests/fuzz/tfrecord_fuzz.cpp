// Reads any bytes as a TFRecord file, and its records as tf.train.Example.

#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/sync_wait.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

static lade::async_generator<lade::buffer> in_pieces(lade::buffer whole, std::size_t bytes) {
  for (std::size_t at = 0; at < whole.size(); at += bytes) {
    auto piece = whole.slice(at, std::min(bytes, whole.size() - at));
    co_yield piece;
  }
}

static void parse(const lade::buffer& record) try {
  auto parsed = lade::io::parse_example(lade::sample("record").with_data(record));
  // A number takes at least a byte in the record, and at most 8 in memory.
  if (parsed.content_bytes() > 8 * record.size()) std::abort();
} catch (const lade::error&) {}

// Whatever pieces the file comes in, its records have no more bytes than it.
static lade::task<> read(lade::buffer file, std::size_t piece_bytes) {
  std::atomic<std::uint64_t> damaged = 0;
  auto records = lade::io::read_tfrecords(in_pieces(file, piece_bytes), "file",
                                          {.skip_damaged = true, .damaged = &damaged});
  std::size_t bytes = 0;
  while (auto* record = co_await records.next()) {
    bytes += record->size() + 16;
    parse(*record);
  }
  if (bytes + 16 * damaged > file.size()) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lade::buffer file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  parse(file);
  for (std::size_t piece_bytes : {std::size_t{7}, std::size_t{1} << 20}) {
    try {
      lade::sync_wait(read(file, piece_bytes));
    } catch (const lade::error&) {}
  }
  return 0;
}
