// Demuxes a video in memory over and over with lade: on several threads, or in several processes.
// FFmpeg opens files and decoders under locks of the process, which threads would wait for.

#include <lade/media/av/demuxer.hpp>

#include <thread>

#include "media.hpp"
#include "processes.hpp"

namespace {

struct settings {
  std::string file;
  std::size_t items;
  std::size_t threads;
  std::size_t processes;
};

class demux_reader {
 public:
  demux_reader(const settings& wanted, const lade::buffer& file) : wanted_(wanted), file_(file) {}

  void warm_up() { read(1); }
  bench::totals read() { return read(wanted_.items); }

 private:
  bench::totals read(std::size_t items) {
    std::vector<bench::totals> each(wanted_.threads);
    {
      std::vector<std::jthread> threads;
      for (auto& mine : each)
        threads.emplace_back([&, items] {
          for (std::size_t i = 0; i < items; ++i) mine.add(packet_bytes());
        });
    }
    bench::totals all;
    for (auto& mine : each) all.add(mine);
    return all;
  }

  std::size_t packet_bytes() const {
    using lade::media::stream_kind;
    return lade::media::demux(file_, wanted_.file, stream_kind::video).data_bytes();
  }

  const settings& wanted_;
  const lade::buffer& file_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "lade: the packets of a video in memory.");
  settings wanted;
  wanted.file = options.text("file", "build/media/h264-720p.mp4", "the video");
  wanted.items = options.number("items", 1, "how often each thread demuxes it");
  wanted.threads = options.number("threads", 1, "that demux; each has a CPU");
  wanted.processes = options.number("processes", 1, "of so many threads each");
  options.done();

  const auto file = bench::load<lade::buffer>(wanted.file);
  auto all =
      bench::read_by(wanted.threads, wanted.processes, [&] { return demux_reader(wanted, file); });
  bench::items_report("demux_bench", all.done.items, all.done.bytes / all.done.items,
                      {all.wall_s, all.cpu_s})
      .add("threads", wanted.threads)
      .add("processes", wanted.processes)
      .print();
}
