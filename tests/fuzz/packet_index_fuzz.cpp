// Parses any bytes as the index of a video, and asks it for its frames.

#include <lade/error.hpp>
#include <lade/media/av/packet_index.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "sealed.hpp"

using namespace lade::media;

static void ask(const packet_index& index) {
  if (index.size() == 0) return;
  const std::array frames{std::int64_t{0}, index.size() / 2, index.size() - 1};
  for (const auto frame : frames) {
    (void)index.is_key(frame);
    (void)index.pts(frame);
  }
  for (const auto& range : index.ranges(frames))
    if (range.first >= range.last || range.last > index.packets().size()) std::abort();
  try {
    for (const auto frame : frames) (void)index.frame_at(index.time(frame));
    (void)index.end();
  } catch (const lade::error& refused) {
    if (refused.code() != lade::errc::limit_exceeded) std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = lade::test::sealed(data, size, "LADEVIDX");
  try {
    const auto index = packet_index::parse(file, "fuzz");
    const auto again = index.serialise();
    if (packet_index::parse(again, "again").serialise().text() != again.text()) std::abort();
    ask(index);
  } catch (const lade::error& refused) {
    const auto code = refused.code();
    if (code != lade::errc::invalid_data && code != lade::errc::unsupported) std::abort();
  }
  return 0;
}
