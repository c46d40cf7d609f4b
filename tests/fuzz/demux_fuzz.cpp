// Demuxes any bytes as a media file of any format, and decodes some packets of each stream: of a
// file in memory, and of a reader that does not do what it should.

#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

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

// The last bytes of the file say what each read does; most read what they should.
class unreliable_reader final : public lade::byte_reader {
 public:
  explicit unreliable_reader(lade::buffer file) : file_(std::move(file)) {}

  const std::string& name() const noexcept override { return name_; }

  std::uint64_t size() const override {
    switch (script(script_bytes)) {
      case 0xf0: return file_.size() * 2;
      case 0xf1: return file_.size() / 2;
      case 0xf2: return ~std::uint64_t{0};
      default: return file_.size();
    }
  }

  lade::task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    const auto begin = std::min<std::uint64_t>(offset, file_.size());
    const auto rest = file_.bytes().subspan(static_cast<std::size_t>(begin));
    auto count = std::min(into.size(), rest.size());
    const auto step = script(reads_++ % script_bytes);
    if (step % 16 == 10) count /= 2;
    if (step % 16 == 11) count = std::min<std::size_t>(count, 1);
    if (step % 16 == 12) count = 0;
    std::copy_n(rest.begin(), count, into.begin());
    if (step % 16 == 13) co_return into.size() + step;
    if (step % 16 == 14) co_return ~std::size_t{0};
    if (step % 16 == 15) throw lade::error(lade::errc::failed, "read", "it broke");
    co_return count;
  }
  using byte_reader::read_at;

 private:
  static constexpr std::size_t script_bytes = 8;  // of the reads, and one before for the size

  unsigned script(std::size_t step) const noexcept {
    if (file_.size() <= step) return 0;
    return std::to_integer<unsigned>(file_.data()[file_.size() - 1 - step]);
  }

  lade::buffer file_;
  std::string name_ = "unreliable";
  mutable std::size_t reads_ = 0;  // one at a time
};

static lade::task<> decode_some_of(demuxer& from, int stream) {
  auto read = co_await from.read(stream);
  decode_some(read);
}

static lade::task<> demux_slowly(std::shared_ptr<const lade::byte_reader> from,
                                 damage_policy damage) {
  auto opened = co_await demuxer::open(std::move(from), {.damage = damage});
  const auto count = std::min(opened.streams().size(), most_streams);
  for (std::size_t i = 0; i < count; ++i) {
    try {
      co_await decode_some_of(opened, static_cast<int>(i));
    } catch (const lade::error&) {}
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static lade::runtime runs({.threads = 1});
  lade::buffer file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  ignore_refusal([&] {
    demuxer opened(file, "fuzz");
    const auto count = std::min(opened.streams().size(), most_streams);
    for (std::size_t i = 0; i < count; ++i)
      ignore_refusal([&] { decode_some(lade::sync_wait(opened.read(static_cast<int>(i)))); });
  });
  for (const auto damage : {damage_policy::refuse, damage_policy::tolerate})
    ignore_refusal([&] {
      lade::sync_wait(runs, demux_slowly(std::make_shared<unreliable_reader>(file), damage));
    });
  return 0;
}
