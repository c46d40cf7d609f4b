// Reads any bytes as a pattern of shards, and as the names of members.

#include "../../io/formats/sample_name.hpp"

#include <lade/error.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/support/divide_list.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto name = lade::detail::divide_member_name(text))
    if (name->key().size() + name->field().size() + 1 != size) std::abort();
  (void)lade::support::divide_list(text);
  if (size > 40) return 0;  // a short pattern may stand for ten million names
  for (auto digits = 0; char c : text)
    if (c >= '0' && c <= '9' && ++digits > 6) return 0;
  try {
    lade::io::shards all(text);
    if (all.names().empty()) std::abort();
  } catch (const lade::error&) {}
  return 0;
}
