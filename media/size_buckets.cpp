#include <lade/error.hpp>
#include <lade/media/size_buckets.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade::media {

// The factor, at least 1, by which the proportions differ.
static double proportion_factor(const image_size& a, const image_size& b) {
  const auto one = static_cast<double>(std::int64_t{a.width} * b.height);
  const auto other = static_cast<double>(std::int64_t{b.width} * a.height);
  return std::max(one / other, other / one);
}

static bool has_equal_proportions(const image_size& a, const image_size& b) {
  return std::int64_t{a.width} * b.height == std::int64_t{b.width} * a.height;
}

size_buckets::size_buckets(std::vector<image_size> sizes) : sizes_(std::move(sizes)) {
  const auto refuse = [](const std::string& reason) {
    throw error(errc::invalid_argument, "make size_buckets", reason);
  };
  if (sizes_.empty()) refuse("there is no size");
  constexpr int most = 1 << 15;
  const auto text = [](const image_size& size) {
    return fmt::format("{} x {}", size.width, size.height);
  };
  for (auto each = sizes_.begin(); each != sizes_.end(); ++each) {
    if (std::min(each->width, each->height) < 1 || std::max(each->width, each->height) > most)
      refuse(text(*each) + " is not 1 to 32768 pixels wide and high");
    const auto same = std::find_if(sizes_.begin(), each, [&](const image_size& other) {
      return has_equal_proportions(*each, other);
    });
    if (same != each) refuse(fmt::format("{} has the proportions of {}", text(*each), text(*same)));
  }
}

std::size_t size_buckets::nearest(const image_size& image) const {
  if (image.width < 1 || image.height < 1)
    throw error(errc::invalid_argument, "choose a size", "the image has no pixels");
  const auto found = std::ranges::min_element(
      sizes_, {}, [&](const image_size& size) { return proportion_factor(size, image); });
  return static_cast<std::size_t>(found - sizes_.begin());
}

std::vector<std::size_t> size_buckets::boundaries() const {
  std::vector<std::size_t> numbers(sizes_.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

}  // namespace lade::media
