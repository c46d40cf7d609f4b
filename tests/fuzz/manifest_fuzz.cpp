// Reads any bytes as manifests of both formats and as lines, whole and in pieces, which must give
// the same.

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/json_lines.hpp>
#include <lade/io/formats/manifest.hpp>
#include <lade/io/store.hpp>
#include <lade/sync_wait.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

using namespace lade;

static async_generator<buffer> pieces_of(buffer bytes, std::size_t piece_bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    auto piece = bytes.slice(at, std::min(piece_bytes, bytes.size() - at));
    co_yield piece;
  }
}

class one_object final : public io::store {
 public:
  one_object(buffer content, std::size_t piece_bytes)
      : content_(std::move(content)), piece_bytes_(piece_bytes) {}

  task<buffer> read(std::string) const override { std::abort(); }
  task<std::shared_ptr<const byte_reader>> open(std::string, bool) const override { std::abort(); }
  async_generator<buffer> stream(std::string, stream_options) const override {
    return pieces_of(content_, piece_bytes_);
  }

 private:
  buffer content_;
  std::size_t piece_bytes_;
};

static std::string text_of(const field& of) {
  switch (of.type()) {
    case field::kind::text: return std::string(of.text());
    case field::kind::integer: return std::to_string(of.integer());
    case field::kind::number: return std::to_string(of.number());
    default: std::abort();
  }
}

// The samples before a failure, and the failure.
static task<std::string> listed(io::manifest from) {
  std::string all;
  try {
    auto samples = from.list();
    while (auto* next = co_await samples.next()) {
      if (next->key().empty()) std::abort();
      all += from.identity_of(*next) + "=" + std::to_string(next->label());
      for (auto& each : next->fields()) all += "," + each.name() + ":" + text_of(each);
      all += ";";
    }
  } catch (const error& refused) {
    bool is_limit = refused.code() == errc::limit_exceeded;
    if (!is_limit && refused.code() != errc::invalid_data) std::abort();
    all += refused.what();
  }
  co_return all;
}

static task<std::string> lines_of(async_generator<buffer> file) {
  std::string all;
  try {
    auto lines = io::read_lines(std::move(file), "file", {.max_line_bytes = 1000});
    while (auto* line = co_await lines.next()) {
      if (line->text().find('\n') != std::string_view::npos) std::abort();
      all.append(line->text()).append("\n");
    }
  } catch (const error& refused) {
    if (refused.code() != errc::limit_exceeded) std::abort();
    all += refused.what();
  }
  co_return all;
}

static std::string read(const buffer& bytes, std::size_t piece_bytes) {
  io::mount("fuzz://", std::make_shared<one_object>(bytes, piece_bytes));
  std::string all;
  for (auto* name : {"fuzz://a/b.csv", "fuzz://a/b.jsonl"})
    all += sync_wait(listed(io::manifest(name, {.max_row_bytes = 1000})));
  return all + sync_wait(lines_of(pieces_of(bytes, piece_bytes)));
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  buffer bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  if (read(bytes, std::size_t{1} << 20) != read(bytes, 7)) std::abort();
  return 0;
}
