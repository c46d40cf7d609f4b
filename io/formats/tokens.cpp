#include "mapped_file.hpp"
#include "megatron_index.hpp"
#include "query_digest.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/continue_on.hpp>
#include <lade/error.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/tokens.hpp>
#include <lade/io/ranges.hpp>
#include <lade/io/store.hpp>
#include <lade/runtime.hpp>
#include <lade/this_context.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace lade::io {

// The identity of a token file for checkpoints. A copy in another directory, or behind a URL, is
// the same file.
static std::string token_file_identity(std::string_view name) {
  auto shown = without_secrets(name);
  bool is_url = !scheme_of(name).empty();
  if (is_url) shown = shown.substr(0, shown.find('?'));
  auto query = detail::query_digest(name);
  return shown.substr(shown.rfind('/') + 1) + (query.empty() ? "" : "?" + query);
}

struct token_file::content {
  content(std::string path, buffer all, element_type tokens)
      : name(std::move(path)),
        identity(token_file_identity(name)),
        bytes(all.size()),
        mapped(std::move(all)),
        type(tokens) {}

  content(std::shared_ptr<const byte_reader> from, element_type tokens)
      : name(from->name()),
        identity(token_file_identity(name)),
        bytes(from->size()),
        ranged(std::move(from)),
        type(tokens) {}

  void add_index(buffer bytes_read, std::string_view index_name) {
    index_bytes = std::move(bytes_read);
    index.emplace(index_bytes.bytes(), index_name, bytes);
    type = index->type();
  }

  std::string name;
  std::string identity;                       // of the tokens, for checkpoints
  std::uint64_t bytes;                        // size of the token file
  buffer mapped;                              // the whole file, unless it is read by ranges
  std::shared_ptr<const byte_reader> ranged;  // null if mapped
  element_type type;
  buffer index_bytes;
  std::optional<megatron_index> index;  // a view of index_bytes
};

static void require_little_endian(const std::string& name) {
  if constexpr (std::endian::native != std::endian::little)
    throw error(errc::unsupported, "open " + name, "this machine stores the high byte first");
}

static bool is_integer(element_type type) noexcept {
  switch (type) {
    case element_type::boolean:
    case element_type::f16:
    case element_type::bf16:
    case element_type::f32:
    case element_type::f64: return false;
    default: return true;
  }
}

static void require_integers(const std::string& name, element_type type) {
  require_little_endian(name);
  if (!is_integer(type))
    throw error(errc::invalid_argument, "open " + name,
                "tokens are integers, not " + std::string(lade::name(type)));
}

static void require_whole_tokens(const std::string& name, std::uint64_t bytes, element_type type) {
  if (bytes % element_bytes(type) != 0)
    throw error(errc::invalid_data, "open " + name,
                fmt::format("its {} bytes are no whole number of {}", bytes, lade::name(type)));
}

// The path of a name. Throws if it cannot be mapped.
static std::string path_to_map(std::string name) {
  if (find_store(name))
    throw error(errc::unsupported, "map " + without_secrets(name),
                "it is a URL; open_tokens and open_megatron open it");
  return local_path(std::move(name));
}

token_file token_file::open(std::string path, element_type type) {
  path = path_to_map(std::move(path));
  require_integers(path, type);
  auto mapped = map_file(path);
  require_whole_tokens(path, mapped.size(), type);
  return token_file(std::make_shared<const content>(std::move(path), std::move(mapped), type));
}

token_file token_file::open_megatron(const std::string& prefix) {
  auto path = path_to_map(prefix);
  require_little_endian(path);
  auto index = map_file(path + ".idx");
  auto opened = std::make_shared<content>(path + ".bin", map_file(path + ".bin"), element_type::u8);
  opened->add_index(std::move(index), path + ".idx");
  return token_file(std::move(opened));
}

const std::string& token_file::name() const noexcept { return content_->name; }

const std::string& token_file::identity() const noexcept { return content_->identity; }

// The same file with the identity of that path or URL.
token_file token_file::known_as(std::string_view name) const {
  auto known = std::make_shared<content>(*content_);
  known->identity = token_file_identity(name);
  return token_file(std::move(known));
}

bool token_file::is_mapped() const noexcept { return !content_->ranged; }

element_type token_file::type() const noexcept { return content_->type; }

std::uint64_t token_file::size() const noexcept {
  return content_->bytes / element_bytes(content_->type);
}

std::uint64_t token_file::documents() const noexcept {
  return content_->index ? content_->index->documents() : 1;
}

std::uint64_t token_file::document_begin(std::uint64_t i) const noexcept {
  if (content_->index) return content_->index->document_begin(i);
  return i == 0 ? 0 : size();
}

void token_file::require_tokens(std::uint64_t first, std::uint64_t count) const {
  if (first > size() || count > size() - first)
    throw error(errc::invalid_argument, "read " + name(),
                fmt::format("{} tokens at {}; it has {}", count, first, size()));
}

static tensor tokens_in(buffer bytes, element_type type) {
  auto count = static_cast<std::int64_t>(bytes.size() / element_bytes(type));
  return {{type, {count}}, std::move(bytes)};
}

tensor token_file::tokens(std::uint64_t first, std::uint64_t count) const {
  require_tokens(first, count);
  if (!is_mapped())
    throw error(errc::unsupported, "read " + name(),
                "it is not mapped, so that its tokens have to be awaited, with read");
  auto item = element_bytes(type());
  return tokens_in(content_->mapped.slice(first * item, count * item), type());
}

task<tensor> token_file::read(std::uint64_t first, std::uint64_t count) const {
  require_tokens(first, count);
  return read_range(content_, first, count);
}

task<tensor> token_file::read_range(std::shared_ptr<const content> from, std::uint64_t first,
                                    std::uint64_t count) {
  auto item = element_bytes(from->type);
  auto offset = first * item;
  auto size = static_cast<std::size_t>(count * item);
  if (!from->ranged) co_return tokens_in(from->mapped.slice(offset, size), from->type);
  buffer bytes;
  if (size > 0) bytes = co_await from->ranged->read_at(offset, size);
  // Memory of other code may be unaligned.
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % item != 0) {
    auto copy = co_await allocate(size);
    std::memcpy(copy.data(), bytes.data(), size);
    bytes = std::move(copy);
  }
  co_return tokens_in(std::move(bytes), from->type);
}

task<token_file> open_tokens(std::shared_ptr<const byte_reader> from, element_type type) {
  require_integers(from->name(), type);
  require_whole_tokens(from->name(), from->size(), type);
  co_return token_file(std::make_shared<const token_file::content>(std::move(from), type));
}

task<token_file> open_tokens(std::string name, element_type type) {
  if (find_store(name)) {
    auto from = co_await open_reader(name);
    auto opened = co_await open_tokens(std::move(from), type);
    co_return opened.known_as(name);
  }
  co_await continue_on_pool();  // mapping blocks
  co_return token_file::open(std::move(name), type);
}

static task<buffer> read_token_index(std::shared_ptr<const byte_reader> from, std::uint64_t most) {
  auto bytes = from->size();
  if (bytes > most)
    throw error(errc::limit_exceeded, "read the index " + from->name(),
                fmt::format("it has {} bytes; max_index_bytes is {}", bytes, most));
  auto index = co_await allocate(static_cast<std::size_t>(bytes));
  co_await read_in_parts(std::move(from), index.bytes(), 0);
  co_return index;
}

task<token_file> open_megatron(std::shared_ptr<const byte_reader> bin,
                               std::shared_ptr<const byte_reader> idx, megatron_options options) {
  require_little_endian(bin->name());
  auto index = co_await read_token_index(idx, options.max_index_bytes);
  auto opened = std::make_shared<token_file::content>(std::move(bin), element_type::u8);
  co_await continue_on_pool();  // a long loop
  opened->add_index(std::move(index), idx->name());
  co_return token_file(std::move(opened));
}

task<token_file> open_megatron(std::string prefix, megatron_options options) {
  if (find_store(prefix)) {
    auto idx = co_await open_reader(prefix + ".idx");
    auto bin = co_await open_reader(prefix + ".bin");
    auto opened = co_await open_megatron(std::move(bin), std::move(idx), options);
    co_return opened.known_as(prefix + ".bin");
  }
  co_await continue_on_pool();
  co_return token_file::open_megatron(prefix);
}

}  // namespace lade::io
