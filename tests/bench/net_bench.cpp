// Reads objects of a web server with lade.

#include <lade/batch.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>

#include <thread>

#include "bench.hpp"
#include "net.hpp"

namespace {

// A part of an object; its key is the request's number.
class read_part {
 public:
  read_part(lade::io::http::client web, std::vector<bench::object_request> all)
      : web_(std::move(web)),
        all_(std::make_shared<const std::vector<bench::object_request>>(std::move(all))) {}

  lade::task<lade::sample> operator()(lade::sample from) const {
    auto& what = (*all_)[static_cast<std::size_t>(from.label())];
    auto got = co_await web_.get(what.url, {.offset = what.offset, .bytes = what.bytes});
    co_return std::move(from).with_data(got.body());
  }

 private:
  lade::io::http::client web_;
  std::shared_ptr<const std::vector<bench::object_request>> all_;
};

lade::pipeline<lade::sample> make_reads(const lade::io::http::client& web,
                                        const bench::objects& wanted) {
  auto all = wanted.requests();
  auto depth = static_cast<unsigned>(wanted.depth);
  std::vector<lade::sample> samples;
  for (std::size_t i = 0; i < all.size(); ++i)
    samples.emplace_back(all[i].url, static_cast<std::int64_t>(i));
  auto source = lade::from(std::move(samples));
  if (!wanted.by_ranges) return source | lade::map(lade::io::read, {.concurrency = depth});
  return source | lade::map(read_part(web, std::move(all)), {.concurrency = depth});
}

void read_all(lade::runtime& runtime, const lade::pipeline<lade::sample>& reads,
              const bench::objects& wanted, std::size_t delay_ms) {
  bench::stopwatch clock;
  std::size_t total = 0;
  bool is_small = wanted.object_bytes() < 1'000'000;
  auto batches = reads | lade::batch(is_small ? 64 : 1);
  for (auto& batch : runtime.run(batches))
    for (auto& one : batch) total += one.data().size();
  auto made = bench::report_objects("net_bench", wanted, clock);
  if (total != wanted.count * wanted.object_bytes()) bench::fail("not all bytes came");
  if (delay_ms > 0) {
    auto most = static_cast<double>(wanted.depth) / (static_cast<double>(delay_ms) / 1e3);
    made.add("of_possible", static_cast<double>(wanted.count) / clock.wall_s() / most);
  }
  made.add("runtime", runtime.describe()).print();
}

// How long it takes to leave a run whose requests nobody answers.
void stop(lade::runtime& runtime, const lade::pipeline<lade::sample>& reads, std::size_t rounds) {
  bench::random_stream random(1);
  std::vector<double> milliseconds;
  for (std::size_t i = 0; i < rounds; ++i) {
    auto run = std::make_unique<lade::run<lade::sample>>(runtime, reads, lade::run_options{});
    std::this_thread::sleep_for(
        std::chrono::duration<double, std::milli>(random.between(100, 300)));
    bench::stopwatch clock;
    run.reset();
    milliseconds.push_back(clock.wall_s() * 1e3);
  }
  bench::report("net_bench")
      .add("p50_ms", bench::median(milliseconds))
      .add("max_ms", bench::quantile(milliseconds, 1))
      .print();
}

// How much memory is in use when the consumer stops for a while after its first object.
void stall(lade::runtime& runtime, const lade::pipeline<lade::sample>& reads,
           std::size_t budget_mib, std::size_t ms) {
  std::size_t done = 0;
  for (auto& one : runtime.run(reads)) {
    if (done++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    if (one.data().empty()) bench::fail("an empty object");
  }
  auto peak = bench::peak_rss_mib();
  bench::report("net_bench")
      .add("objects", done)
      .add("peak_rss_mib", peak)
      .add("mib_over_budget", peak - static_cast<double>(budget_mib))
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Reads objects of a web server with lade.");
  auto wanted = bench::parse_objects(options);
  auto kind = options.choice("reactor", "automatic|io_uring|fallback", "what waits for sockets");
  auto reactors = options.number("reactors", 0, "reactor threads; 0: as many as needed");
  auto threads = options.number("threads", 0, "of the CPU pool; 0: one for each CPU");
  auto delay = options.number("delay-ms", 0, "of the server, for what is possible");
  auto budget = options.number("budget-mib", 1024, "what buffers may hold");
  auto stops = options.number("stop", 0, "how often a run is left in the middle");
  auto stall_ms = options.number("stall-ms", 0, "how long the consumer looks at its first object");
  options.done();

  lade::io::http::client_options settings;
  settings.verify = false;
  settings.connections_per_host = static_cast<unsigned>(std::max<std::size_t>(wanted.depth, 1));
  settings.requests = settings.connections_per_host;
  lade::io::http::client web(settings);
  lade::io::mount("http://", lade::io::http::web_store(web));
  lade::io::mount("https://", lade::io::http::web_store(web));
  using lade::reactor_kind;
  lade::runtime runtime({.threads = static_cast<unsigned>(threads),
                         .reactor = kind == "io_uring"   ? reactor_kind::io_uring
                                    : kind == "fallback" ? reactor_kind::fallback
                                                         : reactor_kind::automatic,
                         .reactors = static_cast<unsigned>(reactors),
                         .memory_bytes = budget << 20});
  auto reads = make_reads(web, wanted);
  if (stops > 0)
    stop(runtime, reads, stops);
  else if (stall_ms > 0)
    stall(runtime, reads, budget, stall_ms);
  else
    read_all(runtime, reads, wanted, delay);
}
