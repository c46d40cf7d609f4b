// Reads any bytes as a WAV file: in memory and by ranges, which must give the same.

#include <lade/error.hpp>
#include <lade/io/formats/wav.hpp>
#include <lade/sync_wait.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lade::buffer file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  auto from = std::make_shared<lade::memory_reader>(file, "fuzz");
  std::string in_memory;
  std::string by_ranges;
  try {
    const auto info = lade::sync_wait(lade::io::read_wav_info(from));
    by_ranges = std::to_string(info.frames) + " frames";
    lade::sync_wait(lade::io::read_wav(from, {.offset_seconds = info.seconds() / 2}));
  } catch (const lade::error& refused) {
    by_ranges = refused.what();
  }
  try {
    auto audio = lade::io::parse_wav(file, "fuzz", {.to_f32 = true});
    if (audio.spec().bytes() > 4 * size) std::abort();
    in_memory = std::to_string(audio.shape()[0]) + " frames";
  } catch (const lade::error& refused) {
    const auto code = refused.code();
    if (code != lade::errc::invalid_data && code != lade::errc::unsupported) std::abort();
    in_memory = refused.what();
  }
  if (in_memory != by_ranges) std::abort();
  return 0;
}
