// What a run holds whose items are large beside its budget: files that are read, or images that are
// decoded in the size that they have.

#include <lade/buffer_pool.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/map.hpp>
#include <lade/media/image.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/sample.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "../media/jpeg_writer.hpp"
#include "../support/temp_dir.hpp"
#include "bench.hpp"

namespace {

constexpr double mib = 1 << 20;

// Without blocks on the disk: reading them touches the memory all the same.
std::vector<lade::sample> make_files(const lade::testing_support::temp_dir& dir, std::size_t count,
                                     std::size_t bytes) {
  std::vector<lade::sample> files;
  for (std::size_t i = 0; i < count; ++i) {
    auto path = dir.write(std::to_string(i), "");
    std::filesystem::resize_file(path, bytes);
    files.emplace_back(path);
  }
  return files;
}

lade::sample make_image(std::int64_t width, std::int64_t height, bool progressive) {
  lade::tensor pixels(lade::element_type::u8, {height, width, 3});
  std::memset(pixels.bytes(), 99, pixels.spec().bytes());
  return lade::sample("image").with_data(
      lade::media::write_jpeg(pixels, {.progressive = progressive}));
}

lade::sample read_image(const std::string& path) {
  lade::buffer file(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(file.size()));
  return lade::sample(path).with_data(std::move(file));
}

std::size_t bytes_of(const lade::sample& item) { return item.data().size(); }
std::size_t bytes_of(const lade::tensor& item) { return item.spec().bytes(); }

template <class T>
void run_all(lade::runtime& runtime, const lade::pipeline<T>& items, std::string_view kind,
             double one_mib) {
  std::size_t most = 0;
  bench::stopwatch clock;
  for (auto& item : runtime.run(items)) most = std::max(most, bytes_of(item));
  auto memory = runtime.memory().stats();
  bench::report(kind)
      .add("item_mib", std::max(one_mib, static_cast<double>(most) / mib))
      .add("pool_peak_mib", static_cast<double>(memory.peak_bytes) / mib)
      .add("peak_rss_mib", bench::peak_rss_mib())
      .add("wall_s", clock.wall_s())
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "What a run holds whose items are large beside its budget.");
  auto kind = options.choice("kind", "files|images|progressive", "what is loaded");
  auto path = options.text("image", "", "a file to decode instead of an image that is made");
  auto budget = options.number("budget-mib", 64, "of the runtime");
  auto parallel = options.number("parallel", 64, "items at a time, and threads for images");
  auto count = options.number("count", 100, "items");
  auto bytes = options.number("bytes", 200 << 20, "of a file");
  auto width = options.number("width", 4000, "of an image, and 3/4 of it the height");
  options.done();
  auto concurrency = static_cast<unsigned>(parallel);
  auto threads = kind == "files" ? 2 : concurrency;
  lade::runtime runtime({.threads = threads, .memory_bytes = budget << 20});
  if (kind == "files") {
    lade::testing_support::temp_dir dir;
    auto files = make_files(dir, count, bytes);
    run_all(runtime, lade::from(files) | lade::map(lade::io::read, {.concurrency = concurrency}),
            kind, 0);
    return 0;
  }
  auto wide = static_cast<std::int64_t>(width);
  auto image =
      path.empty() ? make_image(wide, wide * 3 / 4, kind == "progressive") : read_image(path);
  lade::media::decode_image decode;
  auto one = static_cast<double>(decode.memory_needed(image)) / mib;
  run_all(runtime,
          lade::from(std::vector<lade::sample>(count, image)) |
              lade::map(decode, {.concurrency = concurrency}),
          kind, one);
}
