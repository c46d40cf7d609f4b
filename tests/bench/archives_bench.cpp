// Reads archives, arrays and records with lade: from memory, or from files in the page cache.

#include <lade/io/file.hpp>
#include <lade/io/formats/npy.hpp>
#include <lade/io/formats/npz.hpp>
#include <lade/io/formats/tar.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/io/formats/wav.hpp>
#include <lade/runtime.hpp>

#include <cstring>
#include <thread>

#include "archives.hpp"
#include "bench.hpp"

namespace {

using bench::totals;

// A file, and its content if that is in memory.
struct input {
  std::string path;
  lade::buffer content;
};

using inputs = std::vector<input>;

// What reads a file, or its content in memory.
lade::task<std::shared_ptr<const lade::byte_reader>> open(const input& from) {
  if (from.content.empty()) co_return co_await lade::io::open_reader(from.path);
  co_return std::make_shared<const lade::memory_reader>(from.content, from.path);
}

lade::task<totals> read_members(const input& from) {
  totals all;
  auto members = lade::io::tar_members(co_await open(from));
  while (auto* member = co_await members.next()) all.add(member->content().size());
  co_return all;
}

lade::task<totals> read_records(const input& from) {
  totals all;
  auto records = lade::io::read_tfrecords(co_await open(from));
  while (auto* record = co_await records.next()) all.add(record->size());
  co_return all;
}

lade::task<totals> read_arrays(const input& from) {
  totals all;
  std::vector<lade::field> fields;
  if (from.content.empty()) {
    fields = co_await lade::io::read_npz(from.path);
  } else {
    auto reader = co_await open(from);
    fields = co_await lade::io::read_npz(std::move(reader));
  }
  std::size_t bytes = 0;
  for (auto& each : fields) bytes += each.tensor().spec().bytes();
  all.add(bytes);
  co_return all;
}

lade::task<totals> read_one(const input& from, const std::string& format) {
  if (format == "tar") co_return co_await read_members(from);
  if (format == "tfrecord") co_return co_await read_records(from);
  if (format.starts_with("npz")) co_return co_await read_arrays(from);
  totals all;
  lade::tensor made;
  if (format == "npy" && from.content.empty())
    made = co_await lade::io::read_npy(from.path);
  else if (format == "npy")
    made = lade::io::parse_npy(from.content, from.path);
  else if (from.content.empty())
    made = co_await lade::io::read_wav(from.path);
  else
    made = lade::io::parse_wav(from.content, from.path);
  all.add(made.spec().bytes());
  co_return all;
}

// Every `of`-th of the inputs from `first` on, one after the other, so many times.
lade::task<totals> read_share(const inputs& from, std::string format, std::size_t first,
                              std::size_t of, std::size_t passes) {
  totals all;
  for (std::size_t pass = 0; pass < passes; ++pass)
    for (auto i = first; i < from.size(); i += of) {
      auto one = co_await read_one(from[i], format);
      all.add(one);
    }
  co_return all;
}

class lade_reader {
 public:
  lade_reader(const bench::archives& wanted, const inputs& from)
      : wanted_(wanted),
        from_(from),
        runtime_(std::make_unique<lade::runtime>(
            lade::runtime_options{.threads = static_cast<unsigned>(wanted.threads),
                                  .reactors = static_cast<unsigned>(wanted.threads)})) {}

  void warm_up() { read(1); }
  totals read() { return read(wanted_.passes); }

 private:
  totals read(std::size_t passes) {
    std::vector<totals> each(wanted_.threads);
    {
      std::vector<std::jthread> waiting;
      for (std::size_t i = 0; i < each.size(); ++i)
        waiting.emplace_back([&, i] {
          each[i] =
              lade::sync_wait(*runtime_, read_share(from_, wanted_.format, i, each.size(), passes));
        });
    }
    totals all;
    for (auto& one : each) all.add(one);
    return all;
  }

  const bench::archives& wanted_;
  const inputs& from_;
  std::unique_ptr<lade::runtime> runtime_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Reads archives, arrays and records with lade.");
  auto wanted = bench::parse_archives(options);
  options.done();

  inputs from;
  for (auto& path : wanted.paths()) {
    from.push_back({path, {}});
    if (!wanted.in_memory) continue;
    auto content = bench::content_of(path);
    from.back().content = lade::allocate_now(content.size());
    std::memcpy(from.back().content.data(), content.data(), content.size());
  }
  bench::measure_archives("archives_bench", wanted, [&] { return lade_reader(wanted, from); });
}
