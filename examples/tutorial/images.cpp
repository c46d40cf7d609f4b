// Turns a folder of photos into batches.

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include <iostream>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  lade::runtime runtime;
  auto batches =
      lade::from(lade::io::files(arguments[1], "**/*.jpg")) | lade::map(lade::io::read) |
      lade::batch_into(lade::media::decode_image({.width = 224, .height = 224}), {.size = 8});
  for (auto& batch : runtime.run(batches))
    std::cout << batch.size() << " images: u8 " << to_string(batch.tensor().shape()) << "\n";
}
