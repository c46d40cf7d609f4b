// Batches of tokens for a language model:
//
//   tokens PREFIX [LENGTH]     reads PREFIX.bin and PREFIX.idx, a data set of Megatron
//
// PREFIX is a path, "data/train", or a URL, "s3://bucket/train". A batch has 8 windows of LENGTH
// tokens (1,024 if not given) and the token behind each, so that inputs are the first LENGTH and
// targets the last. Windows are shuffled over the whole data set and assigned to ranks. Local files
// are mapped, and nothing is copied before the batch; of remote ones, each window is a request.

#include <lade/io/formats/tokens.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/lade.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>

static void run(const std::string& prefix, std::uint64_t length) {
  lade::runtime runtime;
  auto file = lade::sync_wait(runtime, lade::io::open_megatron(prefix));
  lade::io::token_windows windows(file, {.length = length + 1, .stride = length});
  auto batches =
      lade::from_index(windows.size(), std::identity(), {.identity = windows.identity()}) |
      lade::shuffle({.seed = 7}) | lade::shard(lade::rank_from_environment()) |
      lade::map(lade::io::read_tokens(windows)) | lade::batch(8) | lade::pad();

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
