// image_loader DIRECTORY: turns a directory of images into training batches, shows how fast that
// goes and what limits it, and draws a picture of the first batch. The pipeline is in load().

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "skipped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

static std::atomic<int> interrupted_by = 0;  // a signal, such as Ctrl-C

// The first Ctrl-C asks the run to stop, the second one ends the program as usual.
static void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = [](int signal) { interrupted_by = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

static std::vector<lade::sample> find_images(const options& wanted, skipped& without) {
  const auto* pattern = "**/*.{jpg,jpeg,png,webp,avif,gif,bmp,tif,tiff,ppm,pgm,pbm}";
  std::vector<std::string> unreadable;
  lade::io::labelled_files listing(wanted.directory, pattern,
                                   {.ignore_case = true,
                                    .may_be_empty = true,
                                    .unreadable = wanted.skip_bad ? &unreadable : nullptr});
  auto images = listing.list_all();
  without.note_directories(unreadable);
  if (images.empty()) {
    auto why = wanted.directory + ": no images in it or below it";
    if (!unreadable.empty()) why += "; could not " + unreadable.front();
    if (unreadable.size() > 1) why += ", and " + std::to_string(unreadable.size() - 1) + " more";
    throw std::runtime_error(why);
  }
  return images;
}

static lade::media::image_options image_options(const options& wanted) {
  using enum lade::media::image_fit;
  lade::media::image_options result{.width = static_cast<int>(wanted.size),
                                    .height = static_cast<int>(wanted.size),
                                    .fit = wanted.train ? random_crop : centre_crop,
                                    .fast = wanted.fast};
  if (wanted.floats) {
    result.layout = lade::media::image_layout::chw;
    result.type = lade::element_type::f32;
    result.mean = {0.485F, 0.456F, 0.406F};  // of ImageNet, as most models expect
    result.stddev = {0.229F, 0.224F, 0.225F};
  }
  return result;
}

static lade::runtime_options runtime_options(const options& wanted) {
  using enum lade::reactor_kind;
  auto reactor = wanted.reactor == "io_uring"   ? io_uring
                 : wanted.reactor == "fallback" ? fallback
                                                : automatic;
  return {.threads = wanted.threads, .reactor = reactor};
}

// Throws where standard output cannot be written: who keeps the report should know.
static void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    lade::raise(errno != 0 ? errno : EIO, "write standard output");
}

static void print_heading(const std::string& directory, const std::vector<lade::sample>& images,
                          const lade::runtime& runtime) {
  std::set<std::int64_t> classes;
  for (auto& image : images)
    if (image.label() != lade::sample::no_label) classes.insert(image.label());
  fmt::print("{}: {}", lade::printable(directory), count_of(images.size(), "image", "images"));
  if (!classes.empty()) fmt::print(", {}", count_of(classes.size(), "class", "classes"));
  fmt::print("\n{}\n", runtime.describe());
  flush_output();
}

// What the progress bar shows of a run through `images` images, `epochs` times.
static progress::status status_of(const lade::run_statistics& run, std::uint64_t images,
                                  std::uint64_t epochs) {
  progress::status now;
  now.total = images * epochs;
  std::uint64_t skipped = 0;
  for (auto& stage : run.stages) {
    skipped += stage.skipped;
    if (stage.name == "read") now.bytes = stage.bytes;
    if (stage.name == "decode_image") now.items = stage.out + skipped;
  }
  if (epochs > 1)
    now.what = fmt::format("epoch {} of {}", std::min(now.items / images + 1, epochs), epochs);
  return now;
}

static void load(const options& wanted) {
  const auto image = image_options(wanted);
  const auto bad = wanted.skip_bad ? lade::on_error::skip : lade::on_error::fail;
  report result(wanted.contact_sheet, image);
  skipped without(wanted.failure_log);
  const auto images = find_images(wanted, without);
  lade::runtime runtime(runtime_options(wanted));
  print_heading(wanted.directory, images, runtime);

  // clang-format off
  auto order = lade::from(images);
  if (wanted.train) order = order | lade::shuffle({.seed = wanted.seed});
  auto batches = order
      | lade::repeat(wanted.epochs)
      | lade::map(lade::io::read,
                  {.concurrency = wanted.read_ahead, .on_error = bad})
      | lade::batch_into(lade::media::decode_image(image), {.size = wanted.batch, .on_error = bad});
  // clang-format on

  std::optional<lade::trace> trace;
  if (!wanted.trace.empty()) trace.emplace(wanted.trace);
  lade::run_options how;
  how.seed = wanted.seed;
  how.on_failure = [&](auto& failure) { without.note(failure); };
  if (trace) how.trace = &*trace;
  how.failure_log = wanted.failure_log;
  auto run = runtime.run(batches, how);
  catch_interrupts();
  try {
    progress bar([&] {
      if (interrupted_by) run.stop();
      return status_of(run.statistics(), images.size(), wanted.epochs);
    });
    for (auto& batch : run) result.note(batch);  // a trainer would train here
  } catch (const lade::error& failure) {
    if (!interrupted_by || failure.code() != lade::errc::stopped) throw;
  }
  if (interrupted_by)
    fmt::print("\ninterrupted after {}\n", count_of(result.images(), "image", "images"));
  result.print(run.statistics(), {.slowest = wanted.slowest});
  without.print();
  result.save_contact_sheet();
  if (trace) trace->finish();
  flush_output();
  if (result.images() == 0 && !interrupted_by)
    throw std::runtime_error(wanted.directory + ": no image could be used");
}

static int complain(const std::exception& failure, std::string_view hint, int status) {
  fmt::print(stderr, "image_loader: {}{}\n", lade::printable(failure.what()), hint);
  return status;
}

int main(int argc, char** argv) try {
  std::setlocale(LC_CTYPE, "");  // what the terminal can show
  const auto wanted = parse_options(argc, argv);
  if (wanted.help) {
    fmt::print("{}", help_text());
    flush_output();
    return 0;
  }
  load(wanted);
  if (interrupted_by) std::raise(interrupted_by);  // what waits for the program should know
  return 0;
} catch (const usage_error& failure) {
  return complain(failure, " (see image_loader --help)", 2);
} catch (const std::exception& failure) {
  return complain(failure, "", 1);
}
