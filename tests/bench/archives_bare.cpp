// The floor of archives_bench: what reading costs without a library. Files are read by pread into
// memory that is used again, headers are parsed, and nothing is checked but ZIP's checksums.

#include <libdeflate.h>

#include <cstring>
#include <span>
#include <thread>

#include "archives.hpp"
#include "bench.hpp"

namespace {

using bench::totals;

// One thread's memory, which stays in the second-level cache if it can.
struct scratch {
  std::vector<std::byte> content;
  std::vector<std::byte> inflated;
  libdeflate_decompressor* inflater = libdeflate_alloc_decompressor();

  std::byte* room(std::size_t bytes) {
    if (content.size() < bytes) content.resize(bytes);
    return content.data();
  }
};

std::size_t octal(const std::byte* field, std::size_t digits) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < digits && field[i] >= std::byte{'0'}; ++i)
    value = value * 8 + static_cast<std::size_t>(field[i]) - '0';
  return value;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// How long a record with its header is, and how long its content; nothing at the end.
struct record {
  std::size_t all = 0;
  std::size_t content = 0;
};

record tar_record(const std::byte* header) {
  if (header[0] == std::byte{0}) return {};
  auto bytes = octal(header + 124, 12);
  return {512 + (bytes + 511) / 512 * 512, bytes};
}

record tf_record(const std::byte* header) {
  auto bytes = load<std::uint64_t>(header);
  return {bytes + 16, bytes};
}

// Calls `parse` for each header of a file in memory.
template <class Parse>
totals walk(std::span<const std::byte> file, Parse parse) {
  totals all;
  for (std::size_t at = 0; at + 12 < file.size();) {
    auto found = parse(file.data() + at);
    if (found.all == 0) break;
    all.add(found.content);
    at += found.all;
  }
  return all;
}

// The same with a file that is read in pieces, the end of one before the next.
template <class Parse>
totals walk(int fd, scratch& memory, Parse parse) {
  constexpr std::size_t piece = std::size_t{256} << 10, header = 512;
  totals all;
  std::size_t begin = 0, end = 0, at = 0;
  auto* room = memory.room(piece);
  auto require = [&](std::size_t bytes) {
    if (bytes <= end - begin) return true;
    std::memmove(room, room + begin, end - begin);
    end -= std::exchange(begin, 0);
    room = memory.room(std::max(piece, bytes + header));
    auto got = ::pread(fd, room + end, memory.content.size() - end, static_cast<off_t>(at));
    if (got <= 0) return false;
    end += static_cast<std::size_t>(got);
    at += static_cast<std::size_t>(got);
    return bytes <= end;
  };
  while (require(header) || end - begin > 12) {
    auto found = parse(room + begin);
    if (found.all == 0 || !require(found.all)) break;
    all.add(found.content);
    begin += found.all;
  }
  return all;
}

std::size_t npy_bytes(std::span<const std::byte> file) {
  return file.size() - 10 - load<std::uint16_t>(file.data() + 8);
}

// The sizes of the members of a ZIP archive, which are inflated if they must be.
std::size_t npz_bytes(std::span<const std::byte> file, scratch& memory) {
  auto* end = file.data() + file.size() - 22;
  auto* entry = file.data() + load<std::uint32_t>(end + 16);
  std::size_t all = 0;
  for (int i = load<std::uint16_t>(end + 10); i > 0; --i) {
    auto method = load<std::uint16_t>(entry + 10), name = load<std::uint16_t>(entry + 28);
    auto packed = load<std::uint32_t>(entry + 20), bytes = load<std::uint32_t>(entry + 24);
    auto* local = file.data() + load<std::uint32_t>(entry + 42);
    auto* data = local + 30 + load<std::uint16_t>(local + 26) + load<std::uint16_t>(local + 28);
    if (method == 8) {
      memory.inflated.resize(std::max<std::size_t>(memory.inflated.size(), bytes));
      if (libdeflate_deflate_decompress(memory.inflater, data, packed, memory.inflated.data(),
                                        bytes, nullptr) != LIBDEFLATE_SUCCESS)
        bench::fail("cannot inflate");
      data = memory.inflated.data();
    }
    if (libdeflate_crc32(0, data, bytes) != load<std::uint32_t>(entry + 16))
      bench::fail("a wrong checksum");
    all += npy_bytes({data, bytes});
    entry += 46 + name + load<std::uint16_t>(entry + 30) + load<std::uint16_t>(entry + 32);
  }
  return all;
}

std::size_t item_bytes(const std::string& format, std::span<const std::byte> file,
                       scratch& memory) {
  if (format == "npy") return npy_bytes(file);
  if (format == "wav") return load<std::uint32_t>(file.data() + 40);
  return npz_bytes(file, memory);
}

totals read_memory(const std::string& format, std::span<const std::byte> file, scratch& memory) {
  if (format == "tar") return walk(file, tar_record);
  if (format == "tfrecord") return walk(file, tf_record);
  return {1, item_bytes(format, file, memory)};
}

totals read_file(const std::string& format, const std::string& path, scratch& memory) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (fd < 0 || ::fstat(fd, &about) != 0) bench::fail("cannot open " + path);
  totals all;
  if (format == "tar") {
    all = walk(fd, memory, tar_record);
  } else if (format == "tfrecord") {
    all = walk(fd, memory, tf_record);
  } else {
    auto bytes = static_cast<std::size_t>(about.st_size);
    auto* content = memory.room(bytes);
    if (::pread(fd, content, bytes, 0) != about.st_size) bench::fail("cannot read " + path);
    all = {1, item_bytes(format, {content, bytes}, memory)};
  }
  ::close(fd);
  return all;
}

// Threads that read every n-th of the files.
class bare_reader {
 public:
  bare_reader(const bench::archives& wanted, const std::vector<std::string>& paths,
              const std::vector<std::string>& contents)
      : wanted_(wanted), paths_(paths), contents_(contents), memory_(wanted.threads) {}

  void warm_up() { read(1); }
  totals read() { return read(wanted_.passes); }

 private:
  totals read(std::size_t passes) {
    std::vector<totals> each(wanted_.threads);
    {
      std::vector<std::jthread> threads;
      for (std::size_t t = 0; t < wanted_.threads; ++t)
        threads.emplace_back([&, t] {
          for (std::size_t pass = 0; pass < passes; ++pass) each[t].add(read_share(t));
        });
    }
    totals all;
    for (auto& one : each) all.add(one);
    return all;
  }

  totals read_share(std::size_t thread) {
    totals all;
    auto& memory = memory_[thread];
    for (auto i = thread; i < paths_.size(); i += wanted_.threads) {
      auto content = std::as_bytes(std::span(contents_[i]));
      all.add(wanted_.in_memory ? read_memory(wanted_.format, content, memory)
                                : read_file(wanted_.format, paths_[i], memory));
    }
    return all;
  }

  const bench::archives& wanted_;
  const std::vector<std::string>& paths_;
  const std::vector<std::string>& contents_;
  std::vector<scratch> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Reads archives, arrays and records without a library.");
  auto wanted = bench::parse_archives(options);
  options.done();

  auto paths = wanted.paths();
  std::vector<std::string> contents;
  for (auto& path : paths) contents.push_back(wanted.in_memory ? bench::content_of(path) : "");
  bench::measure_archives("archives_bare", wanted,
                          [&] { return bare_reader(wanted, paths, contents); });
}
