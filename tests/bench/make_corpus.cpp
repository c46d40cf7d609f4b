// Makes the images that the loaders are measured with: random crops of the shipped photographs,
// 500x375, 4:2:0, each at the JPEG quality that comes nearest to the wanted size. The same options
// give the same files on every machine.

#include <stdio.h>  // before jpeglib.h, which uses FILE

#include <jpeglib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "bench.hpp"

namespace {

constexpr int width = 500;
constexpr int height = 375;

struct picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;

  std::uint8_t at(int x, int y, int channel) const {
    return rgb[(static_cast<std::size_t>(y) * static_cast<std::size_t>(this->width) +
                static_cast<std::size_t>(x)) *
                   3 +
               static_cast<std::size_t>(channel)];
  }
};

std::vector<std::uint8_t> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) bench::fail("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

picture decode(const std::vector<std::uint8_t>& bytes) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  picture result{static_cast<int>(jpeg.output_width), static_cast<int>(jpeg.output_height), {}};
  std::size_t stride = std::size_t{jpeg.output_width} * 3;
  result.rgb.resize(stride * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = result.rgb.data() + stride * jpeg.output_scanline;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return result;
}

// The crop of `from` at (x, y), `crop_width` wide and of our aspect ratio, scaled down to our size.
// Each pixel is the mean of the source pixels that begin in it; whole numbers only.
picture crop_and_shrink(const picture& from, int x, int y, int crop_width) {
  int crop_height = crop_width * height / width;
  picture to{width, height, std::vector<std::uint8_t>(std::size_t{width} * height * 3)};
  std::size_t out = 0;
  for (int row = 0; row < height; ++row)
    for (int column = 0; column < width; ++column)
      for (int channel = 0; channel < 3; ++channel) {
        int top = y + row * crop_height / height, bottom = y + (row + 1) * crop_height / height;
        int left = x + column * crop_width / width;
        int right = x + (column + 1) * crop_width / width;
        int sum = 0, count = (bottom - top) * (right - left);
        for (int j = top; j < bottom; ++j)
          for (int i = left; i < right; ++i) sum += from.at(i, j, channel);
        to.rgb[out++] = static_cast<std::uint8_t>((sum + count / 2) / count);
      }
  return to;
}

// A random crop of between the smallest and the largest size the photograph allows.
picture random_crop(const picture& photo, bench::random_stream& random) {
  int widest = std::min(photo.width, photo.height * width / height);
  int crop_width =
      width + static_cast<int>(random.below(static_cast<std::size_t>(widest - width + 1)));
  int crop_height = crop_width * height / width;
  int x = static_cast<int>(random.below(static_cast<std::size_t>(photo.width - crop_width + 1)));
  int y = static_cast<int>(random.below(static_cast<std::size_t>(photo.height - crop_height + 1)));
  return crop_and_shrink(photo, x, y, crop_width);
}

// Baseline, 4:2:0, the standard Huffman tables: what cameras and data sets mostly hold.
std::vector<std::uint8_t> encode(const picture& image, int quality) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(image.rgb.data()) +
                std::size_t{jpeg.next_scanline} * jpeg.image_width * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::vector<std::uint8_t> result(bytes, bytes + size);
  std::free(bytes);
  return result;
}

// At the quality whose size is nearest to `wanted`.
std::vector<std::uint8_t> encode_to_size(const picture& image, std::size_t wanted) {
  auto distance = [wanted](const std::vector<std::uint8_t>& bytes) {
    return std::max(bytes.size(), wanted) - std::min(bytes.size(), wanted);
  };
  int low = 1, high = 100;
  std::vector<std::uint8_t> best;
  while (low <= high) {
    int middle = (low + high) / 2;
    auto bytes = encode(image, middle);
    if (bytes.size() <= wanted)
      low = middle + 1;
    else
      high = middle - 1;
    if (best.empty() || distance(bytes) < distance(best)) best = std::move(bytes);
  }
  return best;
}

std::string name_of(const std::string& directory, std::size_t label, std::size_t index) {
  char name[64];
  std::snprintf(name, sizeof name, "/class_%02zu/%06zu.jpg", label, index);
  return directory + name;
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Makes 500x375 JPEG images from the shipped photographs.");
  auto photos_path = options.text("photos", "tests/data/photos", "directory of photographs");
  auto directory = options.text("out", "build/corpus", "directory to write to");
  auto images = options.number("images", 2048, "how many");
  auto wanted = options.number("bytes", 110'000, "wanted size of a file");
  auto seed = options.number("seed", 1, "of the random crops");
  auto threads = options.number("threads", std::thread::hardware_concurrency(), "to work in");
  options.done();

  std::vector<picture> photos;
  for (const auto& path : bench::list_files(photos_path))
    if (path.ends_with(".jpg")) photos.push_back(decode(read_file(path)));
  if (photos.empty()) bench::fail(photos_path + ": no .jpg files");
  for (std::size_t label = 0; label < photos.size(); ++label)
    std::filesystem::create_directories(
        std::filesystem::path(name_of(directory, label, 0)).parent_path());

  std::atomic<std::size_t> next = 0, bytes = 0;
  auto work = [&] {
    for (std::size_t i = next++; i < images; i = next++) {
      bench::random_stream random(seed * 1'000'003 + i);
      std::size_t label = i % photos.size();
      auto file = encode_to_size(random_crop(photos[label], random), wanted);
      std::ofstream out(name_of(directory, label, i), std::ios::binary);
      out.write(reinterpret_cast<const char*>(file.data()),
                static_cast<std::streamsize>(file.size()));
      if (!out.flush()) bench::fail("cannot write to " + directory);
      bytes += file.size();
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads; ++i) workers.emplace_back(work);
  workers.clear();
  bench::report("make_corpus").add("images", images).add("mean_bytes", bytes / images).print();
}
