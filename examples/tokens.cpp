// Batches of tokens for a language model:
//
//   tokens PREFIX [LENGTH]     reads PREFIX.bin and PREFIX.idx, a data set of Megatron
//
// A batch has 8 windows of LENGTH tokens (1,024 if not given) and the token behind each, so that
// inputs are the first LENGTH and targets the last. Windows are shuffled over the whole data set
// and assigned to ranks; nothing is copied before the batch.

#include <lade/io/formats/tokens.hpp>
#include <lade/lade.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

static void run(const std::string& prefix, std::uint64_t length) {
  auto file = lade::io::token_file::open_megatron(prefix);
  lade::io::token_windows windows(file, {.length = length + 1, .stride = length});
  auto batches = lade::from_index(windows.size(), windows, {.identity = windows.identity()}) |
                 lade::shuffle({.seed = 7}) | lade::shard(lade::rank_from_environment()) |
                 lade::batch(8) | lade::pad();

  lade::runtime runtime;
  std::uint64_t steps = 0;
  std::uint64_t tokens = 0;
  for (auto& batch : runtime.run(batches)) {
    ++steps;
    tokens += batch.size() * length;  // a trainer would train here, on batch.data()
  }
  std::printf("%llu documents, %llu windows, %llu steps, %llu tokens\n",
              static_cast<unsigned long long>(file.documents()),
              static_cast<unsigned long long>(windows.size()),
              static_cast<unsigned long long>(steps), static_cast<unsigned long long>(tokens));
}

int main(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "usage: tokens PREFIX [LENGTH]\n");
    return 2;
  }
  try {
    run(arguments[1], count == 3 ? std::stoull(arguments[2]) : 1024);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "tokens: %s\n", failure.what());
    return 1;
  }
}
