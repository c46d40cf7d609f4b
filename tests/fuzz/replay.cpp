// Runs a fuzz target over files and directories, without a fuzzer: each file as it is, cut off,
// and with bytes changed, the same way every time.

#include <lade/random.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

static void try_target(const std::vector<char>& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

static void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> whole{std::istreambuf_iterator<char>(file), {}};
  try_target(whole);
  if (whole.empty()) return;
  lade::random draw(whole.size());
  for (int round = 0; round < 20; ++round) {
    auto bytes = whole;
    if (round % 2 == 0) bytes.resize(draw.below(whole.size()));
    for (auto changes = draw.below(8); changes > 0 && !bytes.empty(); --changes)
      bytes[draw.below(bytes.size())] = static_cast<char>(draw());
    try_target(bytes);
  }
}

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      replay(argv[i]);
      ++files;
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
      if (entry.is_regular_file()) {
        replay(entry.path());
        ++files;
      }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
