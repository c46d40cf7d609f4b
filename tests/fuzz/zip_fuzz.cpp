// Reads any bytes as a ZIP archive, all of its members, and as arrays in both ways.

#include <lade/error.hpp>
#include <lade/io/formats/npz.hpp>
#include <lade/sync_wait.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

static constexpr lade::io::zip_options limits{.max_bytes = 1 << 20};

// Whether what a function throws says why.
template <class F>
static void expect_refusal(F read) {
  try {
    read();
  } catch (const lade::error& refused) {
    const auto code = refused.code();
    if (code != lade::errc::invalid_data && code != lade::errc::unsupported &&
        code != lade::errc::limit_exceeded)
      std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lade::buffer file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  auto from = std::make_shared<lade::memory_reader>(file, "fuzz");
  expect_refusal([&] {
    auto archive = lade::sync_wait(lade::io::open_zip(from, limits));
    for (const auto& member : archive.members()) {
      if (!archive.find(member.name())) std::abort();
      expect_refusal([&] { lade::sync_wait(archive.read(member)); });
    }
  });
  expect_refusal([&] { lade::sync_wait(lade::io::read_npz(from, limits)); });
  const lade::io::decode_npz decode(limits);
  expect_refusal([&] { decode(lade::sample("fuzz").with_data(file)); });
  return 0;
}
