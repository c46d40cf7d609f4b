#include <lade/from_shards.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/support/name_digest.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace lade::detail {

// Tar archives as a shard_source.
class tar_shards {
 public:
  tar_shards(io::shards archives, const io::read_tar_options& options)
      : archives_(std::move(archives)), read_(io::read_tar.with(options)) {
    support::name_digest names;
    for (const auto& each : archives_.names()) names.add(archives_.identity_of(sample(each)));
    identity_ = names.text();
  }

  std::uint64_t size() const noexcept { return archives_.names().size(); }
  const std::string& name(std::uint64_t i) const noexcept { return archives_.names()[i]; }
  const std::string& identity() const noexcept { return identity_; }
  async_generator<sample> read(std::uint64_t i) const { return read_(sample(name(i))); }

 private:
  io::shards archives_;
  read_tar read_;
  std::string identity_;
};

}  // namespace lade::detail

namespace lade::io {

pipeline<sample> from_shards(shards which, const from_shards_options& options) {
  return lade::from_shards(lade::detail::tar_shards(std::move(which), options.read),
                           {.shuffle = options.shuffle,
                            .seed = options.seed,
                            .shard = options.shard,
                            .concurrency = options.concurrency,
                            .buffer = options.buffer,
                            .on_error = options.on_error});
}

}  // namespace lade::io
