// The command lines of the loaders of images and videos.

#pragma once

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

struct options {
  std::string source;  // a directory; of video_loader, also shards
  unsigned batch = 256;
  unsigned size = 224;
  unsigned epochs = 1;
  unsigned threads = 0;  // 0: one for each CPU
  unsigned read_ahead = 64;
  unsigned seed = 0;
  bool train = true;
  bool fast = false;  // of image_loader
  bool floats = false;
  unsigned frames = 16;  // of video_loader, as the next
  double fps = 0;        // 0: frames that follow each other
  int device = -1;       // a GPU's number; -1: none
  bool skip_bad = false;
  bool slowest = false;
  bool help = false;
  std::string contact_sheet;  // a file's name, or none
  std::string trace;          // the same
  std::string failure_log;    // the same
  std::string reactor = "automatic";
};

// One option: its name, its effect on `options`, and its text in --help.
struct option {
  std::string_view name;
  std::string_view value;  // name of its value in --help; empty: it takes none
  std::string help;
  std::string fallback;  // default in words, for --help
  void (*set)(options&, const option&, std::string_view);
};

// A program.
struct loader {
  std::string_view name;    // "image_loader"
  std::string_view usage;   // name of its argument in --help: "DIRECTORY"
  std::string_view source;  // name of the argument in errors: "directory"
  std::string_view one;     // name of an item of a batch: "clip", "clips"
  std::string_view many;
  std::string_view file;  // name of a file: "video", "videos"
  std::string_view files;
  std::string_view about;  // description in --help
  std::string_view train;  // texts of --train, --val and --float in --help
  std::string_view val;
  std::string_view floats;
  std::string_view decode;        // the stage that decodes items
  std::string_view decode_batch;  // the one that decodes whole batches, with --device
  options defaults;
  std::vector<option> own;  // options that the other program does not have
};

// An invalid command line. what() names the invalid word.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

options parse_options(const loader& program, int argc, char** argv);

// The text of --help.
std::string help_text(const loader& program);

[[noreturn]] inline void refuse_value(const option& chosen, std::string_view got,
                                      std::string_view expected) {
  throw usage_error(fmt::format("{} takes {}, not '{}'", chosen.name, expected, got));
}

// Functions for option::set.
template <auto Member, auto Least, auto Most>
void set_number(options& all, const option& chosen, std::string_view text) {
  auto number = all.*Member;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() ||
      !(number >= Least && number <= Most))
    refuse_value(chosen, text, fmt::format("a number from {} to {}", Least, Most));
  all.*Member = number;
}

template <auto Member, bool Value = true>
void set_flag(options& all, const option&, std::string_view) {
  all.*Member = Value;
}
