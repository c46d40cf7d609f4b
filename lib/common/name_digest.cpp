#include <lade/detail/common/name_digest.hpp>
#include <lade/random.hpp>

#include <charconv>

namespace lade::detail {

std::string hexadecimal(std::uint64_t number) {
  char digits[16];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, 16).ptr};
}

void name_digest::add(std::string_view name) noexcept {
  auto digest = value_ ^ name.size();
  for (char byte : name)
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;  // as of FNV-1a
  value_ = scramble(digest);
}

std::string name_digest::text() const { return "names " + hexadecimal(value_); }

}  // namespace lade::detail
