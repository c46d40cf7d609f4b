// The limit for small files: hand-written readers that read every file of a directory tree into
// reused memory and do nothing with it.

#include <liburing.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <thread>

#include "bench.hpp"

namespace {

constexpr std::size_t page = 4096;

void check(bool good, const std::string& path) {
  if (!good) bench::fail("cannot read " + path);
}

struct job {
  std::vector<std::string> paths;
  std::vector<std::size_t> sizes;  // of all files, for readers that know them
  std::size_t largest = 0;
  std::size_t parallel = 0;  // threads, or operations in flight in each ring
  bool direct = false;
  bool sized = false;  // the sizes are known: no fstat
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> total = 0;

  // The memory that a file is read to: aligned, as O_DIRECT wants it.
  std::size_t slot_bytes() const { return (largest + page - 1) / page * page; }

  // What to read of file number i, which is open.
  unsigned read_bytes(std::size_t i, int file) const {
    auto bytes = sizes[i];
    if (!sized) {
      struct stat about;
      check(::fstat(file, &about) == 0, paths[i]);
      bytes = std::min(slot_bytes(), static_cast<std::size_t>(about.st_size));
    }
    return static_cast<unsigned>(direct ? (bytes + page - 1) / page * page : bytes);
  }
  int flags() const { return O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0); }
};

// One of the threads with open, fstat, pread and close.
void read_with_calls(job& work) {
  std::byte* into = bench::huge_memory(work.slot_bytes());
  std::size_t sum = 0;
  for (auto i = work.next++; i < work.paths.size(); i = work.next++) {
    int file = ::open(work.paths[i].c_str(), work.flags());
    check(file >= 0, work.paths[i]);
    ssize_t got = ::pread(file, into, work.read_bytes(i, file), 0);
    check(got >= 0, work.paths[i]);
    sum += static_cast<std::size_t>(got);
    ::close(file);
  }
  work.total += sum;
}

// One io_uring, set up for a single thread where the kernel can.
class ring {
 public:
  explicit ring(std::size_t in_flight) {
    unsigned entries = 1;
    while (entries < in_flight * 4) entries *= 2;
    for (unsigned flags : {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0U}) {
      int result = ::io_uring_queue_init(entries, &ring_, flags);
      if (result == 0) return;
      if (result != -EINVAL) break;
    }
    bench::fail("io_uring is not available");
  }
  ~ring() { ::io_uring_queue_exit(&ring_); }
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;

  io_uring* get() { return &ring_; }

  // `step` of the file in `slot`, to be found again in the completion.
  io_uring_sqe* operation(std::size_t slot, unsigned step) {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    ::io_uring_sqe_set_data64(entry, slot * 4 + step);
    return entry;
  }

  // Submits, waits for at least one completion and hands all there are to `done`.
  template <class F>
  void turn(F done) {
    ::io_uring_submit_and_wait(&ring_, 1);
    unsigned head = 0, count = 0;
    io_uring_cqe* entry = nullptr;
    io_uring_for_each_cqe(&ring_, head, entry) {
      done(entry->user_data / 4, static_cast<unsigned>(entry->user_data % 4), entry->res);
      ++count;
    }
    ::io_uring_cq_advance(&ring_, count);
  }

 private:
  io_uring ring_{};
};

// Open in the ring; then the read, linked to the close.
void read_in_ring(job& work) {
  enum step : unsigned { open, read, close };
  std::byte* memory = bench::huge_memory(work.parallel * work.slot_bytes());
  ring io(work.parallel);
  std::vector<std::size_t> in_slot(work.parallel);
  std::size_t in_flight = 0, total = 0;

  auto start = [&](std::size_t slot) {
    auto i = work.next++;
    if (i >= work.paths.size()) return;
    in_slot[slot] = i;
    ++in_flight;
    ::io_uring_prep_openat(io.operation(slot, open), AT_FDCWD, work.paths[i].c_str(), work.flags(),
                           0);
  };
  auto opened = [&](std::size_t slot, int file) {
    auto bytes = work.read_bytes(in_slot[slot], file);
    io_uring_sqe* entry = io.operation(slot, read);
    ::io_uring_prep_read(entry, file, memory + slot * work.slot_bytes(), bytes, 0);
    // A hard link: the file is closed after a short read too.
    entry->flags |= IOSQE_IO_HARDLINK;
    entry = io.operation(slot, close);
    ::io_uring_prep_close(entry, file);
  };
  for (std::size_t slot = 0; slot < work.parallel; ++slot) start(slot);
  while (in_flight > 0)
    io.turn([&](std::size_t slot, unsigned step, int result) {
      check(result >= 0, work.paths[in_slot[slot]]);
      if (step == open) return opened(slot, result);
      if (step == read) {
        total += static_cast<std::size_t>(result);
        return;
      }
      --in_flight;
      start(slot);
    });
  work.total += total;
}

// Open, read and close as one linked chain on a descriptor that only the ring knows, into
// registered memory. The sizes are known.
void read_in_chains(job& work) {
  enum step : unsigned { open, read, close };
  std::byte* memory = bench::huge_memory(work.parallel * work.slot_bytes());
  ring io(work.parallel);
  if (::io_uring_register_files_sparse(io.get(), static_cast<unsigned>(work.parallel)) < 0)
    bench::fail("cannot register files");
  std::vector<iovec> slots;
  for (std::size_t slot = 0; slot < work.parallel; ++slot)
    slots.push_back({memory + slot * work.slot_bytes(), work.slot_bytes()});
  // Where memory may not be locked, ordinary reads do.
  bool registered =
      ::io_uring_register_buffers(io.get(), slots.data(), static_cast<unsigned>(slots.size())) == 0;
  std::vector<std::size_t> in_slot(work.parallel);
  std::size_t in_flight = 0, total = 0;

  auto start = [&](std::size_t slot) {
    auto i = work.next++;
    if (i >= work.paths.size()) return;
    in_slot[slot] = i;
    ++in_flight;
    auto index = static_cast<unsigned>(slot);
    io_uring_sqe* entry = io.operation(slot, open);
    // Descriptors of a ring's own are never inherited and refuse the flag that says so.
    ::io_uring_prep_openat_direct(entry, AT_FDCWD, work.paths[i].c_str(), work.flags() & ~O_CLOEXEC,
                                  0, index);
    entry->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
    entry = io.operation(slot, read);
    void* into = slots[slot].iov_base;
    auto bytes = work.read_bytes(i, -1);
    if (registered)
      ::io_uring_prep_read_fixed(entry, static_cast<int>(slot), into, bytes, 0,
                                 static_cast<int>(slot));
    else
      ::io_uring_prep_read(entry, static_cast<int>(slot), into, bytes, 0);
    entry->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
    ::io_uring_prep_close_direct(io.operation(slot, close), index);
  };
  for (std::size_t slot = 0; slot < work.parallel; ++slot) start(slot);
  while (in_flight > 0)
    io.turn([&](std::size_t slot, unsigned step, int result) {
      check(result >= 0, work.paths[in_slot[slot]]);
      if (step == read) total += static_cast<std::size_t>(result);
      if (step != close) return;
      --in_flight;
      start(slot);
    });
  work.total += total;
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "The limit: hand-written readers of many small files.");
  auto directory = options.text("dir", "build/files", "the files, all of one size");
  auto reader = options.choice("reader", "threads|ring|chain",
                               "system calls in threads; open, then read and close in io_uring; "
                               "one linked chain of the three in io_uring");
  job work;
  bool in_ring = reader != "threads";
  auto threads = options.number("threads", in_ring ? 1 : 2, "threads; 0: one for each CPU");
  work.parallel = options.number("parallel", 64, "files in flight in the ring of each thread");
  work.sized = options.flag("sized", "the sizes of files are known; always so for chain");
  work.direct = options.flag("direct", "O_DIRECT: past the page cache");
  auto passes = options.number("passes", 1, "how often all are read");
  bool cold = options.flag("drop-caches", "empty the page cache first");
  options.done();

  work.paths = bench::list_files(directory);
  if (cold) bench::drop_caches(work.paths);
  for (auto& path : work.paths) work.sizes.push_back(std::filesystem::file_size(path));
  work.largest = *std::max_element(work.sizes.begin(), work.sizes.end());
  auto paths = work.paths;
  auto sizes = work.sizes;
  for (std::size_t pass = 1; pass < passes; ++pass) {
    work.paths.insert(work.paths.end(), paths.begin(), paths.end());
    work.sizes.insert(work.sizes.end(), sizes.begin(), sizes.end());
  }
  work.sized = work.sized || reader == "chain";
  if (threads == 0) threads = std::thread::hardware_concurrency();
  auto* read = !in_ring ? read_with_calls : reader == "ring" ? read_in_ring : read_in_chains;
  bench::stopwatch clock;
  {
    std::vector<std::jthread> readers;
    for (std::size_t i = 0; i < threads; ++i) readers.emplace_back(read, std::ref(work));
  }
  double wall = clock.wall_s(), cpu = clock.cpu_s();
  std::size_t bytes = 0;
  for (auto size : work.sizes) bytes += size;
  if (work.total != bytes) bench::fail(directory + ": not all bytes were read");
  auto files = static_cast<double>(work.paths.size());
  bench::report("files_bare")
      .add("reader", reader)
      .add("threads", threads)
      .add("parallel", in_ring ? work.parallel : 1)
      .add("sized", std::size_t{work.sized})
      .add("direct", std::size_t{work.direct})
      .add("cold", std::size_t{cold})
      .add("files", work.paths.size())
      .add("bytes", bytes / work.paths.size())
      .add("wall_s", wall)
      .add("cpu_s", cpu)
      .add("files_per_s", files / wall)
      .add("cpu_s_per_10k", cpu / files * 1e4)
      .print();
}
