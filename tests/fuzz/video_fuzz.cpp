// Indexes any bytes as a video: by the headers of its boxes, in memory and by ranges, or by its
// packets. Decodes its first and its last frame.

#include <lade/byte_reader.hpp>
#include <lade/error.hpp>
#include <lade/media/av/video.hpp>
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
#include <vector>

using namespace lade::media;

// Bytes that are read by ranges, so that headers are read apart from the media.
class range_reader final : public lade::byte_reader {
 public:
  explicit range_reader(lade::buffer content) : content_(std::move(content)) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const override { return content_.size(); }
  lade::task<std::size_t> read_at(std::span<std::byte> into, std::uint64_t offset) const override {
    const auto begin = std::min<std::size_t>(static_cast<std::size_t>(offset), content_.size());
    const auto count = std::min(into.size(), content_.size() - begin);
    std::copy_n(content_.bytes().begin() + static_cast<std::ptrdiff_t>(begin), count, into.begin());
    co_return count;
  }
  using byte_reader::read_at;

 private:
  lade::buffer content_;
  std::string name_ = "fuzz";
};

template <class F>
static void ignore_refusal(F work) {
  try {
    work();
  } catch (const lade::error&) {
  } catch (const std::bad_alloc&) {}
}

static void decode_some(const video& opened) {
  const decode_options options{.damage = damage_policy::tolerate, .max_pixels = 1 << 16};
  opened.frames(std::vector<std::int64_t>{0, opened.size() - 1}, options);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lade::buffer file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  ignore_refusal([&] { decode_some(video(file, "fuzz")); });
  ignore_refusal([&] {
    const auto from = std::make_shared<const range_reader>(file);
    auto opened = lade::sync_wait(video::open(from));
    opened = lade::sync_wait(opened.fetch({0}));
    opened.frames(std::vector<std::int64_t>{0}, {.max_pixels = 1 << 16});
  });
  return 0;
}
