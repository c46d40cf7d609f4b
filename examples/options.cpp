#include "options.hpp"

#include <fmt/format.h>

#include <iterator>
#include <limits>

template <auto Member>
static void set_file(options& all, const option& chosen, std::string_view text) {
  if (text.empty()) refuse_value(chosen, text, "the name of a file");
  all.*Member = text;
}

static void set_reactor(options& all, const option& chosen, std::string_view text) {
  if (text != "io_uring" && text != "fallback") refuse_value(chosen, text, "io_uring or fallback");
  all.reactor = text;
}

// The options of all loaders.
static std::vector<option> common_options(const loader& program) {
  const auto& unset = program.defaults;
  auto number = [](unsigned value) { return fmt::to_string(value); };
  constexpr auto any = std::numeric_limits<unsigned>::max();
  const auto many = program.many;
  const auto files = program.files;
  return {
      {"--batch", "N", fmt::format("{} in a batch", many), number(unset.batch),
       set_number<&options::batch, 1U, 65'536U>},
      {"--size", "N", "width and height of a picture in the batch, in pixels", number(unset.size),
       set_number<&options::size, 1U, 4'096U>},
      {"--epochs", "N", fmt::format("how often to go through all {}", files), number(unset.epochs),
       set_number<&options::epochs, 1U, any>},
      {"--threads", "N", "threads that decode", "one for each CPU",
       set_number<&options::threads, 1U, 1'024U>},
      {"--train", "", std::string(program.train), "default", set_flag<&options::train>},
      {"--val", "", std::string(program.val), "", set_flag<&options::train, false>},
      {"--float", "", std::string(program.floats), "off", set_flag<&options::floats>},
      {"--read-ahead", "N", "files to read at a time", number(unset.read_ahead),
       set_number<&options::read_ahead, 1U, 4'096U>},
      {"--device", "N", "decode on GPU N, and copy batches back", "off",
       set_number<&options::device, 0, 1'023>},
      {"--seed", "N", "of the order and of the random parts", number(unset.seed),
       set_number<&options::seed, 0U, any>},
      {"--skip-bad", "",
       fmt::format("go on without {} that cannot be used; count them at the end", files), "off",
       set_flag<&options::skip_bad>},
      {"--failure-log", "FILE",
       fmt::format("add a line of JSON for every {} that cannot be used", program.file), "none",
       set_file<&options::failure_log>},
      {"--slowest", "", fmt::format("name the {} that took longest", files), "off",
       set_flag<&options::slowest>},
      {"--contact-sheet", "FILE", fmt::format("write a PNG of the first batch's {}", many), "none",
       set_file<&options::contact_sheet>},
      {"--trace", "FILE", "write what every thread did when, for ui.perfetto.dev", "none",
       set_file<&options::trace>},
      {"--reactor", "NAME", "how files are read: io_uring or fallback", "what the kernel allows",
       set_reactor},
      {"--help", "", "print this; so does -h", "", set_flag<&options::help>},
  };
}

static std::vector<option> make_table(const loader& program) {
  auto table = program.own;
  auto common = common_options(program);
  table.insert(table.end(), std::make_move_iterator(common.begin()),
               std::make_move_iterator(common.end()));
  return table;
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

options parse_options(const loader& program, int argc, char** argv) {
  auto all = program.defaults;
  const auto table = make_table(program);
  for (int at = 1; at < argc; ++at) {
    std::string_view word = argv[at];
    if (word == "-h") {
      all.help = true;
    } else if (word.starts_with('-')) {
      at = set_option(all, table, argc, argv, at);
    } else if (all.source.empty()) {
      all.source = word;
    } else {
      throw usage_error(
          fmt::format("one {} at a time: {} or {}", program.source, all.source, word));
    }
  }
  if (all.source.empty() && !all.help) throw usage_error(fmt::format("which {}?", program.source));
  return all;
}

std::string help_text(const loader& program) {
  auto text =
      fmt::format("usage: {} {} [OPTIONS]\n\n{}\n", program.name, program.usage, program.about);
  for (auto& each : make_table(program)) {
    auto left = fmt::format("{} {}", each.name, each.value);
    text += fmt::format("  {:<23}{}", left, each.help);
    text += each.fallback.empty() ? "\n" : fmt::format(" ({})\n", each.fallback);
  }
  return text;
}
