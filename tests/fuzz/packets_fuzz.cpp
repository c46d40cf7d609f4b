// Parses any bytes as serialised packets, and decodes them.

#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/packet.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "sealed.hpp"

using namespace lade::media;

static void decode_some(const packets& parsed) {
  const decode_options options{.damage = damage_policy::tolerate, .max_pixels = 1 << 16};
  try {
    decode(parsed.slice(0, std::min<std::size_t>(parsed.size(), 8)), options);
  } catch (const lade::error&) {
  } catch (const std::bad_alloc&) {}
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = lade::test::sealed(data, size, "LADEPKTS");
  try {
    const auto parsed = packets::parse(file, "fuzz");
    if (parsed.data_bytes() > file.size()) std::abort();
    const auto again = parsed.serialise();
    if (packets::parse(again, "again").serialise().text() != again.text()) std::abort();
    decode_some(parsed);
  } catch (const lade::error& refused) {
    const auto code = refused.code();
    if (code != lade::errc::invalid_data && code != lade::errc::unsupported) std::abort();
  }
  return 0;
}
