// Lists the shards in a bucket, and the fields of their first samples.

#include <lade/io/directory.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/lade.hpp>

#include <iostream>
#include <string>
#include <vector>

static lade::io::shards shards_in(lade::runtime& runtime, const std::string& bucket) {
  lade::io::files listing(bucket, "**/*.tar");
  std::vector<std::string> names;
  for (auto& shard : lade::sync_wait(runtime, listing.load_all())) names.push_back(shard.key());
  return lade::io::shards(names);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  lade::runtime runtime;
  auto samples = lade::io::from_shards(shards_in(runtime, arguments[1]));
  for (auto& sample : runtime.run(samples | lade::take(3))) {
    std::cout << sample.name() << ":";
    for (auto& field : sample.fields()) std::cout << " " << field.name();
    std::cout << "\n";
  }
}
