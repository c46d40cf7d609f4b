#include "mapped_file.hpp"
#include "megatron_index.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/tokens.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

namespace lade::io {

struct token_file::content {
  content(std::string path, element_type tokens) : bin(std::move(path)), type(tokens) {}

  content(const std::string& prefix, const std::shared_ptr<mapped_file>& mapped_index)
      : bin(prefix + ".bin"),
        index_file(mapped_index),
        index(std::in_place, mapped_index->bytes(), mapped_index->path(), bin.bytes().size()),
        type(index->type()) {}

  mapped_file bin;
  std::shared_ptr<mapped_file> index_file;  // null if there is none
  std::optional<megatron_index> index;
  element_type type;
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

token_file token_file::open(std::string path, element_type type) {
  require_little_endian(path);
  if (!is_integer(type))
    throw error(errc::invalid_argument, "open " + path,
                "tokens are integers, not " + std::string(lade::name(type)));
  auto opened = std::make_shared<const content>(std::move(path), type);
  if (opened->bin.bytes().size() % element_bytes(type) != 0)
    throw error(errc::invalid_data, "open " + opened->bin.path(),
                "its " + std::to_string(opened->bin.bytes().size()) +
                    " bytes are no whole number of " + std::string(lade::name(type)));
  return token_file(std::move(opened));
}

token_file token_file::open_megatron(const std::string& prefix) {
  require_little_endian(prefix);
  auto index = std::make_shared<mapped_file>(prefix + ".idx");
  return token_file(std::make_shared<const content>(prefix, index));
}

const std::string& token_file::name() const noexcept { return content_->bin.path(); }

element_type token_file::type() const noexcept { return content_->type; }

std::uint64_t token_file::size() const noexcept {
  return content_->bin.bytes().size() / element_bytes(content_->type);
}

std::uint64_t token_file::documents() const noexcept {
  return content_->index ? content_->index->documents() : 1;
}

std::uint64_t token_file::document_begin(std::uint64_t i) const noexcept {
  if (content_->index) return content_->index->document_begin(i);
  return i == 0 ? 0 : size();
}

tensor token_file::tokens(std::uint64_t first, std::uint64_t count) const {
  if (first > size() || count > size() - first)
    throw error(errc::invalid_argument, "read " + name(),
                std::to_string(count) + " tokens at " + std::to_string(first) + "; it has " +
                    std::to_string(size()));
  auto item = element_bytes(type());
  auto bytes = content_->bin.bytes().subspan(first * item, count * item);
  return {{type(), {static_cast<std::int64_t>(count)}}, buffer(content_, bytes)};
}

}  // namespace lade::io
