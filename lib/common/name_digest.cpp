#include <lade/random.hpp>
#include <lade/support/name_digest.hpp>

#include <fmt/format.h>

namespace lade::support {

void name_digest::add(std::string_view name) noexcept {
  auto digest = value_ ^ name.size();
  for (char byte : name)
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;  // as of FNV-1a
  value_ = scramble(digest);
}

std::string name_digest::text() const { return fmt::format("names {:x}", value_); }

}  // namespace lade::support
