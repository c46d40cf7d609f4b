// Makes the files that the readers are measured with, of bytes that do not compress, a hundred to a
// directory: equal in size, or of sizes that spread evenly on a logarithmic scale.

#include <cmath>
#include <filesystem>
#include <fstream>

#include "bench.hpp"

namespace {

void make_file(const std::string& path, std::vector<std::uint64_t>& words, std::size_t bytes,
               std::uint64_t seed) {
  bench::random_stream random(seed);
  for (auto& word : words) word = random.next();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(bytes));
  if (!out.flush()) bench::fail("cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Makes files of random bytes.");
  auto directory = options.text("out", "build/files", "directory to write to");
  auto files = options.number("files", 20'000, "how many");
  auto bytes = options.number("bytes", 110'000, "the size of each");
  auto spread =
      options.number("spread", 1, "the largest and smallest by this factor larger, smaller");
  options.done();

  std::vector<std::uint64_t> words(bytes * spread / sizeof(std::uint64_t) + 1);
  bench::random_stream random(files);
  for (std::size_t i = 0; i < files; ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "/%04zu/%02zu.bin", i / 100, i % 100);
    std::string path = directory + name;
    if (i % 100 == 0)
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    auto factor = std::pow(static_cast<double>(spread), random.between(-1, 1));
    make_file(path, words, static_cast<std::size_t>(static_cast<double>(bytes) * factor), i);
  }
  bench::report("make_files").add("files", files).add("bytes", bytes).print();
}
