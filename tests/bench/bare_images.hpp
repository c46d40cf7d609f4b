// The work of the bare loop of images, whichever decoder it has: files, crops and results.

#pragma once

#include <lade/random.hpp>  // the crops are lade's: both do the same work

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "bare_pixels.hpp"
#include "bench.hpp"

namespace bench {

inline constexpr int size = 224;
inline constexpr std::size_t pixels = std::size_t{size} * size;

// With the seed and an image's position, what loader_bench's random numbers are keyed by.
inline constexpr int epoch = 0, stage = 3, part = 0;

enum class transform { val, train, resize, decode };

struct image_settings {
  transform what = transform::val;
  bool fast = false;      // resize the planes instead of RGB
  bool as_float = false;  // normalised f32 CHW instead of u8 HWC
  std::size_t images = 0;
  std::size_t batch = 0;
  std::uint64_t seed = 0;
  std::size_t image_bytes() const { return pixels * 3 * (as_float ? sizeof(float) : 1); }
};

// What one axis of the result is made of: see axis::set.
struct span_of_axis {
  double origin, scale;
  int begin, end;
  void set(axis& axis, bool mirrored) const { axis.set(origin, scale, begin, end, size, mirrored); }
  // The same in the coordinates of a plane with half the samples.
  span_of_axis halved(int limit) const {
    return {origin / 2, scale / 2, begin / 2, std::min((end + 1) / 2, limit)};
  }
};

struct view {
  span_of_axis across, down;
  bool mirrored = false;
};

// Shorter side 256, centre crop 224, rounded as torchvision does.
inline view val_view(int width, int height) {
  auto along = [shorter = std::min(width, height)](int length) {
    int resized = static_cast<int>(256.0 * length / shorter);
    double scale = static_cast<double>(length) / resized;
    return span_of_axis{std::nearbyint((resized - size) / 2.0) * scale, scale, 0, length};
  };
  return {along(width), along(height)};
}

// torchvision's RandomResizedCrop with its standard scale and ratio, and a flip. Draws what
// lade::media::decode_image does, in the same order.
inline view train_view(int width, int height, lade::random random) {
  auto of = [](int begin, int length) {
    return span_of_axis{static_cast<double>(begin), static_cast<double>(length) / size, begin,
                        begin + length};
  };
  auto place = [&](int room) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(room) + 1));
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    double area = random.uniform(0.08, 1) * width * height;
    double ratio = std::exp(random.uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    int w = static_cast<int>(std::nearbyint(std::sqrt(area * ratio)));
    int h = static_cast<int>(std::nearbyint(std::sqrt(area / ratio)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    int y = place(height - h);
    int x = place(width - w);
    return {of(x, w), of(y, h), random.uniform() < 0.5};
  }
  int w = std::min(width, height * 4 / 3), h = std::min(height, width * 4 / 3);
  return {of((width - w) / 2, w), of((height - h) / 2, h), random.uniform() < 0.5};
}

inline view resize_view(int width, int height) {
  auto along = [](int length) {
    return span_of_axis{0, static_cast<double>(length) / size, 0, length};
  };
  return {along(width), along(height)};
}

inline view view_of(const image_settings& with, int width, int height, std::size_t index) {
  switch (with.what) {
    case transform::val: return val_view(width, height);
    case transform::train:
      return train_view(width, height, lade::random(with.seed, epoch, index, stage, part));
    default: return resize_view(width, height);
  }
}

// The images of the run, which threads take in turns.
struct image_queue {
  const std::vector<std::string>& paths;  // again and again until there are as many as wanted
  std::size_t images = 0;
  std::atomic<std::size_t> next = 0;

  // False if none is left.
  bool take(std::size_t& index) {
    index = next++;
    return index < images;
  }
  const std::string& path(std::size_t index) const { return paths[index % paths.size()]; }
};

// Reads whole files into memory that is kept from one to the next.
class file_bytes {
 public:
  std::span<const std::uint8_t> read(const std::string& path) {
    int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || ::fstat(file, &about) < 0) fail("cannot open " + path);
    auto length = static_cast<std::size_t>(about.st_size);
    if (bytes_.size() < length) bytes_.resize(length + length / 2);
    if (::pread(file, bytes_.data(), length, 0) != about.st_size) fail("cannot read " + path);
    ::close(file);
    return {bytes_.data(), length};
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Rows of the result on their way to the image's place in the batch.
class image_rows {
 public:
  explicit image_rows(const image_settings& with) : with_(with) {}

  // Where interleaved row `row` is made: in its place, or beside it if floats are wanted.
  std::uint8_t* rgb_row(std::byte* slot, int row) {
    if (with_.as_float) return scratch_.data();
    return reinterpret_cast<std::uint8_t*>(slot) + static_cast<std::size_t>(row) * size * 3;
  }
  void finish_rgb(const std::uint8_t* rgb, std::byte* slot, int row) const {
    if (with_.as_float) normalise(rgb, size, imagenet_, floats(slot, row), pixels);
  }

  // A row of which red, green and blue are apart.
  void finish_colours(const std::array<const std::uint8_t*, 3>& colours, std::byte* slot, int row) {
    if (!with_.as_float)
      return interleave(colours[0], colours[1], colours[2], rgb_row(slot, row), size);
    for (std::size_t c = 0; c < 3; ++c)
      normalise_plane(colours[c], size, imagenet_.scale[c], imagenet_.shift[c],
                      floats(slot, row) + c * pixels);
  }

 private:
  static float* floats(std::byte* slot, int row) {
    return reinterpret_cast<float*>(slot) + static_cast<std::size_t>(row) * size;
  }

  image_settings with_;
  normalisation imagenet_ = imagenet();
  std::array<std::uint8_t, size * 3 + row_slack> scratch_;
};

}  // namespace bench
