// The limit: files to batches as a good engineer writes it in a day for exactly this task, without
// a library around it. Threads take the images in turn; each opens, reads and decodes its image and
// resizes it straight into the image's place in one of two batches. The main thread is the
// consumer.

#include <lade/random.hpp>  // the crops are lade's: both do the same work

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include "bare_jpeg.hpp"
#include "bare_pixels.hpp"
#include "batch_pair.hpp"

namespace {

constexpr int size = 224;
constexpr std::size_t pixels = std::size_t{size} * size;

// With the seed and an image's position, what loader_bench's random numbers are keyed by.
constexpr int epoch = 0, stage = 3, part = 0;

enum class transform { val, train, resize, decode };

struct settings {
  transform what = transform::val;
  bool fast = false;      // resize the planes instead of RGB
  bool as_float = false;  // normalised f32 CHW instead of u8 HWC
  std::size_t images = 0;
  std::size_t batch = 0;
  std::uint64_t seed = 0;
  std::size_t image_bytes() const { return pixels * 3 * (as_float ? sizeof(float) : 1); }
};

// What one axis of the result is made of: see bench::axis::set.
struct span_of_axis {
  double origin, scale;
  int begin, end;
  void set(bench::axis& axis, bool mirrored) const {
    axis.set(origin, scale, begin, end, size, mirrored);
  }
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
view val_view(int width, int height) {
  auto along = [shorter = std::min(width, height)](int length) {
    int resized = static_cast<int>(256.0 * length / shorter);
    double scale = static_cast<double>(length) / resized;
    return span_of_axis{std::nearbyint((resized - size) / 2.0) * scale, scale, 0, length};
  };
  return {along(width), along(height)};
}

// torchvision's RandomResizedCrop with its standard scale and ratio, and a flip. Draws what
// lade::media::decode_image does, in the same order.
view train_view(int width, int height, lade::random random) {
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

view resize_view(int width, int height) {
  auto along = [](int length) {
    return span_of_axis{0, static_cast<double>(length) / size, 0, length};
  };
  return {along(width), along(height)};
}

// What a thread keeps from image to image.
class image_worker {
 public:
  explicit image_worker(const settings& with) : with_(with) {}

  // Decodes `path` into `slot`. `index` counts the images of the run.
  void run(const std::string& path, std::size_t index, std::byte* slot) {
    jpeg_.open(read(path));
    if (with_.what == transform::decode) {
      decode_all();
    } else {
      view from = view_of(index);
      if (with_.fast && jpeg_.is_420())
        from_planes(from, slot);
      else
        from_rgb(from, slot);
      bench::flush_floats();
    }
    jpeg_.close();
  }

 private:
  std::span<const std::uint8_t> read(const std::string& path) {
    int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || ::fstat(file, &about) < 0) bench::fail("cannot open " + path);
    auto length = static_cast<std::size_t>(about.st_size);
    if (bytes_.size() < length) bytes_.resize(length + length / 2);
    if (::pread(file, bytes_.data(), length, 0) != about.st_size)
      bench::fail("cannot read " + path);
    ::close(file);
    return {bytes_.data(), length};
  }

  view view_of(std::size_t index) const {
    int width = jpeg_.width(), height = jpeg_.height();
    switch (with_.what) {
      case transform::val: return val_view(width, height);
      case transform::train:
        return train_view(width, height, lade::random(with_.seed, epoch, index, stage, part));
      default: return resize_view(width, height);
    }
  }

  // libjpeg-turbo's own full decode to RGB, as an application would call it, and nothing else.
  void decode_all() {
    jpeg_.start_rgb(0, jpeg_.width(), 0);
    std::size_t stride = jpeg_.row_bytes();
    rows_.resize(stride * static_cast<std::size_t>(jpeg_.height()));
    while (!jpeg_.at_end()) {
      std::uint8_t* rows[16];
      auto left = static_cast<std::size_t>(jpeg_.height() - jpeg_.next_row());
      for (std::size_t i = 0; i < 16; ++i)
        rows[i] = rows_.data() + stride * (static_cast<std::size_t>(jpeg_.next_row()) + i);
      jpeg_.read_rows({rows, std::min<std::size_t>(16, left)});
    }
  }

  void from_rgb(const view& from, std::byte* slot) {
    from.across.set(across_, from.mirrored);
    from.down.set(down_, false);
    int left = jpeg_.start_rgb(across_.begin(), across_.end(), down_.begin());
    y_.begin(across_, down_, 3, left, down_.begin());
    row_block rows(rows_, jpeg_.row_bytes());
    while (!y_.finished()) {
      int count = jpeg_.read_rows({rows.at, 16});
      for (int i = 0; i < count; ++i) {
        y_.put(rows.at[i]);
        while (y_.ready()) {
          int row = y_.next_output();
          std::uint8_t* out = rgb_row(slot, row);
          y_.take<20>(out);
          finish_row(out, slot, row);
        }
      }
    }
  }

  void from_planes(const view& from, std::byte* slot) {
    from.across.set(across_, from.mirrored);
    from.down.set(down_, false);
    from.across.halved((jpeg_.width() + 1) / 2).set(chroma_across_, from.mirrored);
    from.down.halved((jpeg_.height() + 1) / 2).set(chroma_down_, false);
    jpeg_.start_planes();
    y_.begin(across_, down_, 1, 0, 0);
    u_.begin(chroma_across_, chroma_down_, 1, 0, 0);
    v_.begin(chroma_across_, chroma_down_, 1, 0, 0);
    row_block rows(rows_, static_cast<std::size_t>(jpeg_.width() + 15) / 16 * 16);
    std::uint8_t **y = rows.at, **u = y + 16, **v = y + 24;
    while (!v_.finished()) {
      jpeg_.read_planes(y, u, v);
      for (int i = 0; i < 8; ++i) u_.put(u[i]);
      for (int i = 0; i < 8; ++i) v_.put(v[i]);
      for (int i = 0; i < 16; ++i) {
        y_.put(y[i]);
        while (y_.ready() && u_.ready() && v_.ready()) finish_yuv_row(slot);
      }
    }
  }

  // As many rows as libjpeg-turbo gives at a time, of one image or of three planes.
  struct row_block {
    row_block(std::vector<std::uint8_t>& memory, std::size_t row_bytes) {
      std::size_t stride = row_bytes + bench::row_slack;
      if (memory.size() < stride * 32) memory.resize(stride * 32);
      for (std::size_t i = 0; i < 32; ++i) at[i] = memory.data() + stride * i;
    }
    std::uint8_t* at[32];
  };

  void finish_yuv_row(std::byte* slot) {
    int row = y_.next_output();
    std::uint8_t* out = rgb_row(slot, row);
    y_.take<16>(yuv_[0].data());
    u_.take<16>(yuv_[1].data());
    v_.take<16>(yuv_[2].data());
    bench::yuv_to_rgb(yuv_[0].data(), yuv_[1].data(), yuv_[2].data(), out, size);
    finish_row(out, slot, row);
  }

  // Where row `row` of the result is made: in its place, or beside it if floats are wanted.
  std::uint8_t* rgb_row(std::byte* slot, int row) {
    if (with_.as_float) return scratch_.data();
    return reinterpret_cast<std::uint8_t*>(slot) + static_cast<std::size_t>(row) * size * 3;
  }
  void finish_row(const std::uint8_t* rgb, std::byte* slot, int row) {
    if (with_.as_float)
      bench::normalise(rgb, size, imagenet_,
                       reinterpret_cast<float*>(slot) + static_cast<std::size_t>(row) * size,
                       pixels);
  }

  settings with_;
  bench::normalisation imagenet_ = bench::imagenet();
  bench::jpeg_reader jpeg_;
  std::vector<std::uint8_t> bytes_, rows_;
  bench::axis across_, down_, chroma_across_, chroma_down_;
  bench::row_resizer y_, u_, v_;  // y_ serves RGB as well
  std::array<std::uint8_t, size * 3 + bench::row_slack> scratch_;
  std::array<std::array<std::int16_t, size + bench::row_slack>, 3> yuv_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::stopwatch clock;
  bench::options options(argc, argv, "The limit: a bare loop from image files to batches.");
  auto directory = options.text("dir", "build/corpus", "the images");
  auto what = options.choice("transform", "val|train|resize|decode",
                             "shorter side 256 and centre crop, random resized crop and flip, "
                             "whole image to 224x224, or only libjpeg-turbo's decode to RGB");
  auto quality = options.choice("quality", "exact|fast", "resize RGB, or the planes");
  auto layout = options.choice("layout", "hwc_u8|chw_f32", "of the batch; floats are normalised");
  auto threads = options.number("threads", 1, "that decode");
  settings with;
  with.images = options.number("images", 0, "how many; 0: each file once");
  with.batch = options.number("batch", 256, "images to a batch");
  with.seed = options.number("seed", 1, "of the random crops");
  auto dump = options.text("dump", "", "file to write the first batch to");
  options.done();
  with.what = what == "val"      ? transform::val
              : what == "train"  ? transform::train
              : what == "resize" ? transform::resize
                                 : transform::decode;
  with.fast = quality == "fast";
  with.as_float = layout == "chw_f32";

  auto paths = bench::list_files(directory);
  if (with.images == 0) with.images = paths.size();
  bench::batch_pair batches(with.images, with.batch, with.image_bytes());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads; ++i)
    workers.emplace_back([&] {
      image_worker worker(with);
      for (std::size_t k = next++; k < with.images; k = next++) {
        worker.run(paths[k % paths.size()], k, batches.slot(k));
        batches.filled(k);
      }
    });

  double first_batch_s = 0;
  for (std::size_t b = 0; b < batches.batches(); ++b) {
    const std::byte* batch = batches.wait(b);
    if (b == 0) first_batch_s = clock.wall_s();
    if (b == 0 && !dump.empty())
      std::ofstream(dump, std::ios::binary)
          .write(
              reinterpret_cast<const char*>(batch),
              static_cast<std::streamsize>(std::min(with.batch, with.images) * with.image_bytes()));
    batches.release(b);
  }
  workers.clear();

  double wall = clock.wall_s(), cpu = clock.cpu_s();
  auto images = static_cast<double>(with.images);
  bench::report("bare_loop")
      .add("transform", what)
      .add("quality", quality)
      .add("layout", layout)
      .add("simd", bench::instruction_set)
      .add("threads", threads)
      .add("images", with.images)
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("images_per_s", images / wall)
      .add("images_per_cpu_s", images / cpu)
      .add("first_batch_ms", first_batch_s * 1e3)
      .add("peak_rss_mib", bench::peak_rss_mib())
      .print();
}
