// Packs a folder of photos into a few tar archives.

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/tar_writer.hpp>
#include <lade/lade.hpp>

#include <iostream>
#include <string>

int main(int count, char** arguments) {
  if (count != 3) return 2;
  lade::runtime runtime;
  auto groups = lade::from(lade::io::labelled_files(arguments[1], "**/*.jpg")) |
                lade::shuffle({.seed = 7}) | lade::map(lade::io::read) | lade::batch(8);
  int shards = 0;
  int samples = 0;
  for (auto& group : runtime.run(groups)) {
    auto name = arguments[2] + std::to_string(shards++) + ".tar";
    lade::io::tar_writer shard(name);
    for (auto& sample : group) {
      auto key = std::to_string(samples++);
      shard.add(key + ".jpg", sample.data().bytes());
      shard.add(key + ".cls", std::to_string(sample.label()));
    }
    shard.finish();
    std::cout << name << ": " << group.size() << " samples\n";
  }
}
