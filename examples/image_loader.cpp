// image_loader DIRECTORY: turns a directory of images into training batches, shows how fast that
// goes and what limits it, and draws a picture of the first batch. The pipeline is in load().

#include <lade/io/directory.hpp>
#include <lade/io/file.hpp>
#include <lade/lade.hpp>
#include <lade/media/image.hpp>

#include "contact_sheet.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

static std::atomic<bool> interrupted = false;  // by Ctrl-C

// The first Ctrl-C asks the run to stop, the second one ends the program as usual.
static void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

static bool is_image(const lade::sample& file) {
  constexpr std::array<std::string_view, 8> endings{".jpg", ".jpeg", ".png", ".webp",
                                                    ".gif", ".bmp",  ".tif", ".tiff"};
  auto ending = std::filesystem::path(file.key()).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::find(endings, ending) != endings.end();
}

static std::vector<lade::sample> find_images(const std::string& directory) {
  auto files = lade::io::labelled_files(directory, "**/*").list_all();
  std::erase_if(files, [](const lade::sample& file) { return !is_image(file); });
  if (files.empty()) throw std::runtime_error(directory + ": no images in it or below it");
  return files;
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

static void print_heading(const options& wanted, const std::vector<lade::sample>& images,
                          const lade::runtime& runtime) {
  std::set<std::int64_t> labels;
  for (auto& image : images) labels.insert(image.label());
  fmt::print("{}: {}, {}\n{}\n", wanted.directory, count_of(images.size(), "image", "images"),
             count_of(labels.size(), "label", "labels"), runtime.describe());
  std::fflush(stdout);
}

// What the progress bar shows of a run through `images` images, `epochs` times.
static progress::status status_of(const lade::run_statistics& run, std::uint64_t images,
                                  std::uint64_t epochs) {
  progress::status now;
  now.total = images * epochs;
  for (auto& stage : run.stages) now.bytes = std::max(now.bytes, stage.bytes);
  for (auto& stage : run.stages)  // the last one: what is ready for the trainer
    if (stage.workers > 0) now.images = stage.out + stage.skipped;
  if (epochs > 1)
    now.what = fmt::format("epoch {} of {}", std::min(now.images / images + 1, epochs), epochs);
  return now;
}

static int load(const options& wanted) {
  report result;
  const auto images = find_images(wanted.directory);
  const auto how = image_options(wanted);
  const auto policy = wanted.skip_bad ? lade::on_error::skip : lade::on_error::fail;
  lade::runtime runtime(runtime_options(wanted));
  print_heading(wanted, images, runtime);

  auto order = lade::from(images);
  if (wanted.train) order = order | lade::shuffle({.seed = wanted.seed});

  auto batches =
      order                                                                  //
      | lade::repeat(wanted.epochs)                                          //
      | lade::map(lade::io::read, {.concurrency = wanted.read_ahead, .on_error = policy,
                                   .name = "read"})
      | lade::batch_into(lade::media::decode_image(how), {.size = wanted.batch,
                                                          .on_error = policy});

  auto run = runtime.run(batches, {.seed = wanted.seed});
  std::optional<contact_sheet> sheet;
  catch_interrupts();
  try {
    progress bar([&] {
      if (interrupted) run.stop();
      return status_of(run.statistics(), images.size(), wanted.epochs);
    });
    for (auto& batch : run) {  // a trainer would train here
      result.note_batch(batch);
      if (!sheet && !wanted.contact_sheet.empty()) sheet.emplace(batch.tensor(), how);
    }
  } catch (const lade::error& failure) {
    if (!interrupted || failure.code() != lade::errc::stopped) throw;
  }

  if (sheet) {
    sheet->save(wanted.contact_sheet);
    result.note_contact_sheet(wanted.contact_sheet, sheet->images());
  }
  result.print(run.statistics(), run.failures());
  if (interrupted) throw std::runtime_error("interrupted");
  if (result.images() == 0) throw std::runtime_error(wanted.directory + ": no image could be used");
  return 0;
}

static int complain(const std::exception& failure, std::string_view hint, int status) {
  fmt::print(stderr, "image_loader: {}{}\n", failure.what(), hint);
  return status;
}

int main(int argc, char** argv) try {
  std::setlocale(LC_CTYPE, "");  // what the terminal can show
  const auto wanted = parse_options(argc, argv);
  if (wanted.help) {
    fmt::print("{}", help_text());
    return 0;
  }
  return load(wanted);
} catch (const usage_error& failure) {
  return complain(failure, " (image_loader --help lists the options)", 2);
} catch (const std::exception& failure) {
  return complain(failure, "", 1);
}
