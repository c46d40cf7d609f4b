#include "loader.hpp"

#include "progress.hpp"

#include <lade/io/directory.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

static std::atomic<int> interrupted_by = 0;  // a signal, such as Ctrl-C

// The first Ctrl-C asks the run to stop, the second one ends the program as usual.
static void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = [](int signal) { interrupted_by = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

std::vector<lade::sample> find_files(const loader& program, const options& settings,
                                     std::string_view pattern, skipped& without) {
  std::vector<std::string> unreadable;
  lade::io::labelled_files listing(settings.source, pattern,
                                   {.ignore_case = true,
                                    .may_be_empty = true,
                                    .unreadable = settings.skip_bad ? &unreadable : nullptr});
  auto files = listing.list_all();
  without.record_directories(unreadable);
  if (files.empty()) {
    auto reason = fmt::format("{}: no {} in it or below it", settings.source, program.files);
    if (!unreadable.empty()) reason += "; could not " + unreadable.front();
    if (unreadable.size() > 1) reason += ", and " + std::to_string(unreadable.size() - 1) + " more";
    throw std::runtime_error(reason);
  }
  return files;
}

lade::runtime_options runtime_options(const options& settings) {
  using enum lade::reactor_kind;
  auto reactor = settings.reactor == "io_uring"   ? io_uring
                 : settings.reactor == "fallback" ? fallback
                                                  : automatic;
  return {.threads = settings.threads, .reactor = reactor};
}

// Throws where standard output cannot be written: who keeps the report should know.
static void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    lade::raise(errno != 0 ? errno : EIO, "write standard output");
}

std::string describe_files(const loader& program, const std::vector<lade::sample>& files) {
  std::set<std::int64_t> classes;
  for (auto& file : files)
    if (file.label() != lade::sample::no_label) classes.insert(file.label());
  auto text = count_of(files.size(), program.file, program.files);
  if (!classes.empty()) text += ", " + count_of(classes.size(), "class", "classes");
  return text;
}

void print_heading(const options& settings, const std::string& what, const lade::runtime& runtime) {
  fmt::print("{}: {}\n{}\n", lade::printable(settings.source), what, runtime.describe());
  flush_output();
}

// The status of the progress bar for a run through `items` items, `epochs` times.
static progress::status status_of(const loader& program, const lade::run_statistics& run,
                                  std::uint64_t items, const options& settings) {
  const std::uint64_t epochs = settings.epochs;
  progress::status now;
  now.unit = program.many;
  now.total = items * epochs;
  std::uint64_t skipped = 0;
  for (auto& stage : run.stages) {
    skipped += stage.skipped;
    if (stage.name == "read") now.bytes = stage.bytes;
    if (stage.name == program.decode) now.items = stage.out + skipped;
    if (stage.name == program.decode_batch) now.items = stage.out * settings.batch;
  }
  if (items > 0) now.items = std::min(now.items, now.total);  // the last batch may not be full
  if (epochs > 1 && items > 0)
    now.what = fmt::format("epoch {} of {}", std::min(now.items / items + 1, epochs), epochs);
  return now;
}

void run_loader(const loader& program, const options& settings, lade::runtime& runtime,
                const lade::pipeline<lade::sample_batch>& batches, std::uint64_t items,
                report& result, skipped& without) {
  std::optional<lade::trace> trace;
  if (!settings.trace.empty()) trace.emplace(settings.trace);
  lade::run_options run_options;
  run_options.seed = settings.seed;
  run_options.on_failure = [&](auto& failure) { without.record(failure); };
  if (trace) run_options.trace = &*trace;
  run_options.failure_log = settings.failure_log;
  auto run = runtime.run(batches, run_options);
  catch_interrupts();
  try {
    progress bar([&] {
      if (interrupted_by) run.stop();
      return status_of(program, run.statistics(), items, settings);
    });
    for (auto& batch : run) result.record(batch);  // a trainer would train here
  } catch (const lade::error& failure) {
    if (!interrupted_by || failure.code() != lade::errc::stopped) throw;
  }
  if (interrupted_by)
    fmt::print("\ninterrupted after {}\n", count_of(result.items(), program.one, program.many));
  result.print(run.statistics(), {.slowest = settings.slowest});
  without.print();
  result.save_contact_sheet();
  if (trace) trace->finish();
  flush_output();
  if (result.items() == 0 && !interrupted_by)
    throw std::runtime_error(fmt::format("{}: no {} could be used", settings.source, program.file));
}

static int complain(const loader& program, const std::exception& failure, std::string_view hint,
                    int status) {
  fmt::print(stderr, "{}: {}{}\n", program.name, lade::printable(failure.what()), hint);
  return status;
}

int run_program(const loader& program, int argc, char** argv,
                void (*load)(const options& settings)) {
  try {
    std::setlocale(LC_CTYPE, "");  // character set of the terminal
    const auto settings = parse_options(program, argc, argv);
    if (settings.help) {
      fmt::print("{}", help_text(program));
      flush_output();
      return 0;
    }
    load(settings);
    if (interrupted_by) std::raise(interrupted_by);  // reports the signal to the parent process
    return 0;
  } catch (const usage_error& failure) {
    return complain(program, failure, fmt::format(" (see {} --help)", program.name), 2);
  } catch (const std::exception& failure) {
    return complain(program, failure, "", 1);
  }
}
