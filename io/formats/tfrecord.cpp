#include "tfrecord_reader.hpp"

#include <lade/checksum.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/decompress.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/support/little_endian.hpp>
#include <lade/url.hpp>

#include <utility>

#include <fmt/format.h>

namespace lade {

namespace io {

static std::string doing_tfrecord(std::string_view name, std::uint64_t offset) {
  return fmt::format("read the record at byte {} of {}", offset, name);
}

static std::uint32_t masked_crc(std::span<const std::byte> bytes) noexcept {
  auto crc = crc32c(bytes).value();
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

bool is_tfrecord_data(std::span<const std::byte> data_and_checksum) noexcept {
  auto bytes = data_and_checksum.size() - tfrecord_checksum_bytes;
  return masked_crc(data_and_checksum.first(bytes)) ==
         support::load_little<std::uint32_t>(data_and_checksum.subspan(bytes));
}

std::uint64_t parse_tfrecord_header(std::span<const std::byte> header, std::string_view name,
                                    std::uint64_t offset, std::uint64_t most) {
  auto length = support::load_little<std::uint64_t>(header);
  if (masked_crc(header.first(8)) != support::load_little<std::uint32_t>(header.subspan(8)))
    throw error(errc::invalid_data, doing_tfrecord(name, offset),
                "its length does not match the checksum of the length");
  if (length > most)
    throw error(errc::limit_exceeded, doing_tfrecord(name, offset),
                fmt::format("it has {} bytes; max_record_bytes is {}", length, most));
  return length;
}

tfrecord_reader::tfrecord_reader(stream_reader from, tfrecord_options options)
    : from_(std::move(from)), options_(options) {
  // Prevents overflow of a record's size with its checksum.
  options_.max_record_bytes = std::min(options.max_record_bytes, ~std::uint64_t{0} / 2);
}

void tfrecord_reader::begin(const buffer& header) {
  offset_ = from_.position() - tfrecord_header_bytes;
  length_ = parse_tfrecord_header(header.bytes(), from_.name(), offset_, options_.max_record_bytes);
  has_started_ = true;
}

// Ends the current record. Returns its data, or nothing if it is damaged and skipped.
std::optional<buffer> tfrecord_reader::finish(const buffer& data_and_checksum) {
  has_started_ = false;
  ++read_;
  if (is_tfrecord_data(data_and_checksum.bytes())) return data_and_checksum.slice(0, length_);
  if (!options_.skip_damaged)
    throw error(errc::invalid_data, doing_tfrecord(from_.name(), offset_),
                "its data does not match the checksum");
  if (options_.damaged) options_.damaged->fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

std::optional<buffer> tfrecord_reader::try_next() {
  for (;;) {
    if (!has_started_) {
      auto header = from_.try_read(tfrecord_header_bytes);
      if (!header) return std::nullopt;
      begin(*header);
    }
    auto record = from_.try_read(length_ + tfrecord_checksum_bytes);
    if (!record) return std::nullopt;
    auto data = finish(*record);
    if (data) return data;
  }
}

task<std::optional<buffer>> tfrecord_reader::next() {
  for (;;) {
    auto data = try_next();
    if (data) co_return data;
    if (!has_started_) {
      bool over = co_await from_.at_end();
      if (over) co_return std::nullopt;
      auto header = co_await from_.read(tfrecord_header_bytes, "the head of a record");
      begin(header);
    }
    auto record = co_await from_.read(length_ + tfrecord_checksum_bytes, "a record");
    data = finish(record);
    if (data) co_return data;
  }
}

// Whether a file with this beginning is uncompressed: the header of its first record is valid. The
// length of a record may look like the magic of gzip.
static bool begins_with_tfrecord(const buffer& chunk) noexcept {
  if (chunk.size() < tfrecord_header_bytes) return false;
  auto head = chunk.bytes().first(tfrecord_header_bytes);
  return masked_crc(head.first(8)) == support::load_little<std::uint32_t>(head.subspan(8));
}

static async_generator<buffer> prepend(buffer first, async_generator<buffer> rest) {
  co_yield first;
  while (auto* chunk = co_await rest.next()) co_yield *chunk;
}

// The bytes of a file, decompressed if it is compressed.
static async_generator<buffer> open_tfrecord_file(std::string path, std::uint64_t max_bytes) {
  auto file = stream(path);
  auto* first = co_await file.next();
  if (!first) co_return;
  bool is_plain = begins_with_tfrecord(*first);
  auto whole = prepend(std::move(*first), std::move(file));
  if (!is_plain)
    whole = decompress(std::move(whole), without_secrets(path), {.max_bytes = max_bytes});
  while (auto* chunk = co_await whole.next()) co_yield *chunk;
}

static async_generator<buffer> stream_records(tfrecord_reader from) {
  for (;;) {
    auto record = from.try_next();
    if (!record) record = co_await from.next();
    if (!record) break;
    co_yield *record;
  }
}

async_generator<buffer> read_tfrecords(async_generator<buffer> file, std::string name,
                                       tfrecord_options options) {
  return stream_records(tfrecord_reader(stream_reader(std::move(file), std::move(name)), options));
}

async_generator<buffer> read_tfrecords(std::shared_ptr<const byte_reader> file,
                                       tfrecord_options options) {
  return stream_records(tfrecord_reader(stream_reader(std::move(file)), options));
}

}  // namespace io

async_generator<sample> detail::read_tfrecord::operator()(sample file) const {
  return read(std::move(file), options_);
}

async_generator<sample> detail::read_tfrecord::read(sample file, io::tfrecord_options options) {
  auto content = io::open_tfrecord_file(file.key(), options.max_file_bytes);
  io::tfrecord_reader from(stream_reader(std::move(content), file.name()), options);
  for (;;) {
    auto record = from.try_next();
    if (!record) record = co_await from.next();
    if (!record) break;
    auto key = fmt::format("{}/{}", file.name(), from.number());
    auto made = sample(std::move(key), file.label()).with_data(std::move(*record));
    co_yield made;
  }
}

}  // namespace lade
