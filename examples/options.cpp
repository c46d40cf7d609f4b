#include "options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

// One option: how it is written, what it does to `options`, and what --help says about it.
struct option {
  std::string_view name;
  std::string_view value;  // what --help calls its value; empty: it takes none
  std::string_view help;
  std::string fallback;  // what holds without it, for --help
  void (*set)(options&, const option&, std::string_view);
};

[[noreturn]] static void refuse(const option& which, std::string_view got,
                                std::string_view expected) {
  throw usage_error(fmt::format("{} takes {}, not '{}'", which.name, expected, got));
}

template <auto Member, unsigned Least, unsigned Most>
static void set_number(options& all, const option& which, std::string_view text) {
  unsigned number = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < Least || number > Most)
    refuse(which, text, fmt::format("a number from {} to {}", Least, Most));
  all.*Member = number;
}

template <auto Member, bool Value = true>
static void set_flag(options& all, const option&, std::string_view) {
  all.*Member = Value;
}

template <auto Member>
static void set_file(options& all, const option& which, std::string_view text) {
  if (text.empty()) refuse(which, text, "the name of a file");
  all.*Member = text;
}

static void set_reactor(options& all, const option& which, std::string_view text) {
  if (text != "io_uring" && text != "fallback") refuse(which, text, "io_uring or fallback");
  all.reactor = text;
}

static std::vector<option> make_table() {
  const options unset;
  auto number = [](unsigned value) { return fmt::to_string(value); };
  constexpr auto any = std::numeric_limits<unsigned>::max();
  return {
      {"--batch", "N", "images in a batch", number(unset.batch),
       set_number<&options::batch, 1, 65'536>},
      {"--size", "N", "width and height of an image in the batch, in pixels", number(unset.size),
       set_number<&options::size, 1, 4'096>},
      {"--epochs", "N", "how often to go through all images", number(unset.epochs),
       set_number<&options::epochs, 1, any>},
      {"--threads", "N", "threads that decode", "one for each CPU",
       set_number<&options::threads, 1, 1'024>},
      {"--train", "", "shuffled; a random part of each image, half of them mirrored", "default",
       set_flag<&options::train>},
      {"--val", "", "in the order of the names; the middle of each image", "",
       set_flag<&options::train, false>},
      {"--fast", "", "resize JPEGs before their colours are converted", "off",
       set_flag<&options::fast>},
      {"--float", "", "f32 [N, 3, H, W], normalised, rather than u8 [N, H, W, 3]", "off",
       set_flag<&options::floats>},
      {"--read-ahead", "N", "files to read at a time", number(unset.read_ahead),
       set_number<&options::read_ahead, 1, 4'096>},
      {"--seed", "N", "of the order and of the random parts", number(unset.seed),
       set_number<&options::seed, 0, any>},
      {"--skip-bad", "", "go on without images that cannot be used; count them at the end", "off",
       set_flag<&options::skip_bad>},
      {"--failure-log", "FILE", "add a line of JSON for every image that cannot be used", "none",
       set_file<&options::failure_log>},
      {"--slowest", "", "name the images that took longest", "off", set_flag<&options::slowest>},
      {"--contact-sheet", "FILE", "write a PNG of the first batch's images", "none",
       set_file<&options::contact_sheet>},
      {"--trace", "FILE", "write what every thread did when, for ui.perfetto.dev", "none",
       set_file<&options::trace>},
      {"--reactor", "NAME", "how files are read: io_uring or fallback", "what the kernel allows",
       set_reactor},
      {"--help", "", "print this; so does -h", "", set_flag<&options::help>},
  };
}

// Sets the option at argv[at], "--name value" or "--name=value". Returns the index of the last
// word that belongs to it.
static int set_option(options& all, const std::vector<option>& table, int argc, char** argv,
                      int at) {
  std::string_view word = argv[at];
  auto equals = word.find('=');
  auto name = word.substr(0, equals);
  for (auto& each : table) {
    if (each.name != name) continue;
    std::string_view value;
    if (each.value.empty() && equals != word.npos)
      throw usage_error(fmt::format("{} takes no value", name));
    if (equals != word.npos)
      value = word.substr(equals + 1);
    else if (!each.value.empty() && ++at == argc)
      throw usage_error(fmt::format("{} needs a value", name));
    else if (!each.value.empty())
      value = argv[at];
    each.set(all, each, value);
    return at;
  }
  throw usage_error(fmt::format("no option {}", name));
}

options parse_options(int argc, char** argv) {
  options all;
  const auto table = make_table();
  for (int at = 1; at < argc; ++at) {
    std::string_view word = argv[at];
    if (word == "-h") {
      all.help = true;
    } else if (word.starts_with('-')) {
      at = set_option(all, table, argc, argv, at);
    } else if (all.directory.empty()) {
      all.directory = word;
    } else {
      throw usage_error(fmt::format("one directory at a time: {} or {}", all.directory, word));
    }
  }
  if (all.directory.empty() && !all.help) throw usage_error("which directory?");
  return all;
}

std::string help_text() {
  std::string text =
      "usage: image_loader DIRECTORY [OPTIONS]\n\n"
      "Turns the JPEG, PNG, WebP, AVIF, GIF, BMP, TIFF and PNM images in a directory and below it "
      "into\n"
      "training batches, as fast as it can, and tells what limited it. An image's label is the\n"
      "name of the directory that it is in.\n\n";
  for (auto& each : make_table()) {
    auto left = fmt::format("{} {}", each.name, each.value);
    text += fmt::format("  {:<23}{}", left, each.help);
    text += each.fallback.empty() ? "\n" : fmt::format(" ({})\n", each.fallback);
  }
  return text;
}
