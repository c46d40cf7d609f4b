// Makes the files that the readers are measured with: equal in size, of bytes that do not compress,
// a hundred to a directory.

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
  options.done();

  std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t) + 1);
  for (std::size_t i = 0; i < files; ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "/%04zu/%02zu.bin", i / 100, i % 100);
    std::string path = directory + name;
    if (i % 100 == 0)
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    make_file(path, words, bytes, i);
  }
  bench::report("make_files").add("files", files).add("bytes", bytes).print();
}
