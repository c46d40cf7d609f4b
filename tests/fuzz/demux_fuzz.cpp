// Demuxes any bytes as a media file of any format, and decodes some packets of each stream.

#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/sync_wait.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

using namespace lade::media;

static constexpr std::size_t most_streams = 4;
static constexpr std::size_t most_packets = 8;  // that are decoded of a stream

static void decode_some(const packets& read) {
  const decode_options options{.damage = damage_policy::tolerate, .max_pixels = 1 << 16};
  decode(read.slice(0, std::min(read.size(), most_packets)), options);
}

template <class F>
static void ignore_refusal(F work) {
  try {
    work();
  } catch (const lade::error&) {
  } catch (const std::bad_alloc&) {}
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lade::buffer file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  ignore_refusal([&] {
    demuxer opened(file, "fuzz");
    const auto count = std::min(opened.streams().size(), most_streams);
    for (std::size_t i = 0; i < count; ++i)
      ignore_refusal([&] { decode_some(lade::sync_wait(opened.read(static_cast<int>(i)))); });
  });
  return 0;
}
