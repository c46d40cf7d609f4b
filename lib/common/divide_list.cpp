#include <lade/support/divide_list.hpp>

#include <algorithm>

namespace lade::support {

static std::string_view without_blanks_around(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r\n";
  auto begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::vector<std::string> divide_list(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    auto word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    word = without_blanks_around(word);
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

}  // namespace lade::support
