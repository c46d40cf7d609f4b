#include "png_text.hpp"

#include <algorithm>
#include <charconv>

#include <zlib.h>

namespace lade::media {

static std::string inflate_text(support::byte_view compressed, std::size_t& room) {
  constexpr std::size_t best_ratio = 1032;  // of deflate
  const auto most = compressed.size() <= room / best_ratio ? compressed.size() * best_ratio : room;
  std::string text;
  uLongf size = 0;
  int result = Z_BUF_ERROR;
  for (auto guess = 4 * compressed.size(); result == Z_BUF_ERROR && text.size() < most;
       guess *= 4) {
    text.resize(std::min(guess, most));
    size = text.size();
    result = uncompress(reinterpret_cast<Bytef*>(text.data()), &size, compressed.data(),
                        static_cast<uLong>(compressed.size()));
  }
  if (result != Z_OK) size = 0;
  room -= result == Z_OK ? size : text.size();
  text.resize(size);
  return text;
}

// The bytes up to the next zero. Moves `at` past it.
static std::string_view png_field(support::byte_view body, std::size_t& at) noexcept {
  const auto rest = body.from(at).text();
  const auto length = std::min(rest.find('\0'), rest.size());
  at += length + 1;
  return rest.substr(0, length);
}

std::string_view png_keyword(support::byte_view body) noexcept {
  std::size_t at = 0;
  return png_field(body, at);
}

std::string read_png_text(std::string_view chunk, support::byte_view body, std::size_t& room) {
  std::size_t at = png_keyword(body).size() + 1;
  bool compressed = chunk == "zTXt";
  if (compressed) ++at;  // the compression method, always 0
  if (chunk == "iTXt") {
    compressed = body[at] != 0;
    at += 2;
    png_field(body, at);  // language
    png_field(body, at);  // translated keyword
  }
  const auto value = body.from(at);
  return compressed ? inflate_text(value, room) : std::string(value.text());
}

// Removes the next blank-separated word from `text`, and returns it.
static std::string_view next_word(std::string_view& text) {
  constexpr std::string_view blanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const auto word = text.substr(0, std::min(text.find_first_of(blanks), text.size()));
  text.remove_prefix(word.size());
  return word;
}

std::string raw_profile(std::string_view text) {
  next_word(text);  // name
  next_word(text);  // length
  std::string bytes;
  for (auto digits = next_word(text); !digits.empty(); digits = next_word(text))
    for (std::size_t i = 0; i + 2 <= digits.size(); i += 2) {
      unsigned char byte = 0;
      const auto* end = digits.data() + i + 2;
      if (std::from_chars(digits.data() + i, end, byte, 16).ptr != end) return {};
      bytes.push_back(static_cast<char>(byte));
    }
  return bytes;
}

}  // namespace lade::media
