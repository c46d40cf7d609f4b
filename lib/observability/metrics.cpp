#include <lade/error.hpp>
#include <lade/metrics.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>

#include <fmt/format.h>

namespace lade {

static std::string metric_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text;
  auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

static bool is_metric_name(std::string_view name, std::string_view also) {
  auto is_letter = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           also.find(c) != also.npos;
  };
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && !is_digit(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c); });
}

// Escapes a text for a HELP line or, with `quoted`, for the value of a label.
static std::string metric_escaped(std::string_view text, bool quoted) {
  std::string result;
  for (char c : text) {
    if (c == '\\' || (quoted && c == '"')) result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

static std::string metric_sample(std::string_view name, const metric_labels& labels, double value) {
  std::string line(name);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    auto& [label, text] = labels[i];
    if (!is_metric_name(label, ""))
      throw error(errc::invalid_argument, std::string(name),
                  fmt::format("\"{}\" names no label", label));
    line += fmt::format(R"({}{}="{}")", i == 0 ? "{" : ",", label, metric_escaped(text, true));
  }
  return line + (labels.empty() ? " " : "} ") + metric_number(value) + "\n";
}

static metric_labels with_label(metric_labels labels, std::string name, std::string value) {
  labels.emplace_back(std::move(name), std::move(value));
  return labels;
}

static double metric_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

static const char* metric_type_name(metric_type type) {
  switch (type) {
    case metric_type::counter: return "counter";
    case metric_type::gauge: return "gauge";
    case metric_type::summary: return "summary";
  }
  return "untyped";
}

metrics::family& metrics::of(std::string_view name, metric_type type, std::string_view help) {
  if (!is_metric_name(name, ":"))
    throw error(errc::invalid_argument, "metrics", fmt::format("\"{}\" names no metric", name));
  auto known = std::ranges::find(families_, name, &family::name);
  if (known == families_.end())
    return families_.emplace_back(std::string(name), type, std::string(help), std::string());
  if (known->type != type)
    throw error(errc::invalid_argument, known->name,
                "is a " + std::string(metric_type_name(known->type)));
  return *known;
}

void metrics::add(std::string_view name, metric_type type, std::string_view help, double value,
                  const metric_labels& labels) {
  auto line = metric_sample(name, labels, value);
  of(name, type, help).samples += line;
}

void metrics::add(const run_statistics& run, const metric_labels& labels) {
  using enum metric_type;
  auto sample = [&](const char* name, metric_type type, const char* help, double value) {
    add(std::string("lade_run_") + name, type, help, value, labels);
  };
  sample("elapsed_seconds", gauge, "Time since the run began.", metric_seconds(run.elapsed));
  sample("items_total", counter, "Items delivered to the consumer.",
         static_cast<double>(run.delivered));
  sample("consumer_wait_seconds_total", counter, "Time that the consumer waited for items.",
         metric_seconds(run.consumer_wait));
  sample("output_wait_seconds_total", counter, "Time that the output queue was full.",
         metric_seconds(run.output_wait));
  sample("depth", gauge, "Items in the output queue.", static_cast<double>(run.depth));
  sample("memory_wait_seconds_total", counter,
         "Time that no item was started, because the memory budget was exhausted.",
         metric_seconds(run.memory_wait));
  sample("threads", gauge, "Threads of the CPU pool.", run.threads);
  sample("cpus", gauge, "CPUs that the process may use.", run.cpus);
  for (auto& stage : run.stages) add_stage(stage, with_label(labels, "stage", stage.name));
}

void metrics::add_stage(const stage_statistics& stage, const metric_labels& labels) {
  using enum metric_type;
  auto count = [&](const char* name, const char* help, std::uint64_t value) {
    add(std::string("lade_stage_") + name, counter, help, static_cast<double>(value), labels);
  };
  auto time = [&](const char* name, const char* help, std::chrono::nanoseconds value) {
    add(std::string("lade_stage_") + name, counter, help, metric_seconds(value), labels);
  };
  count("items_total", "Items delivered to the next stage.", stage.out);
  count("input_items_total", "Items received from the previous stage.", stage.in);
  count("failures_total", "Items that failed.", stage.failed);
  count("skipped_total", "Failed items that were dropped.", stage.skipped);
  count("substituted_total", "Failed items that were replaced by the substitute.",
        stage.substituted);
  count("retries_total", "Retries of failed calls.", stage.retried);
  count("repeats_total", "Repeated items: steps of equal_steps.", stage.repeated);
  count("bytes_total", "Bytes of delivered items: read, or written.", stage.bytes);
  time("busy_seconds_total", "Time inside the function, of all workers, up to now.", stage.busy);
  time("cpu_seconds_total", "CPU time of calls that have returned, from samples.", stage.cpu);
  time("awaited_seconds_total", "Of busy, time of calls that awaited something: flat_map.",
       stage.awaited);
  time("paused_seconds_total", "Pauses of all workers before retries.", stage.paused);
  time("input_wait_seconds_total", "Time starved: waiting for the previous stage.",
       stage.input_wait);
  time("output_wait_seconds_total", "Time blocked on output: the next stage is slow.",
       stage.output_wait);
  time("memory_wait_seconds_total", "Time blocked on memory, before an item.", stage.memory_wait);
  time("next_starved_seconds_total", "Time that the next stage waited for this one.",
       stage.next_starved);
  add("lade_stage_workers", gauge, "Concurrency: items that are processed at a time.",
      stage.workers, labels);
  add("lade_stage_slots", gauge, "Items that the stage may hold.", static_cast<double>(stage.slots),
      labels);
  add("lade_stage_depth", gauge, "Items in the slots: queued, in progress, or done.",
      static_cast<double>(stage.depth), labels);
  if (stage.workers > 0 || stage.durations.total() > 0) add_durations(stage, labels);
}

void metrics::add_durations(const stage_statistics& stage, const metric_labels& labels) {
  constexpr std::string_view name = "lade_stage_item_seconds";
  auto& to = of(name, metric_type::summary,
                "Time that a call takes: for one item, or of flat_map for one part or the end.")
                 .samples;
  auto quantile = [&](const char* share, std::chrono::nanoseconds value) {
    to += metric_sample(name, with_label(labels, "quantile", share), metric_seconds(value));
  };
  quantile("0.5", stage.p50);
  quantile("0.9", stage.p90);
  quantile("0.99", stage.p99);
  to += metric_sample(std::string(name) + "_sum", labels, metric_seconds(stage.returned));
  to += metric_sample(std::string(name) + "_count", labels,
                      static_cast<double>(stage.durations.total()));
}

void metrics::add(const process_statistics& process, const metric_labels& labels) {
  using enum metric_type;
  auto sample = [&](const char* name, metric_type type, const char* help,
                    const std::optional<std::uint64_t>& value) {
    if (value) add(std::string("process_") + name, type, help, static_cast<double>(*value), labels);
  };
  auto time = [&](const char* name, const char* help,
                  const std::optional<std::chrono::nanoseconds>& value) {
    if (value) add(std::string("process_") + name, counter, help, metric_seconds(*value), labels);
  };
  sample("resident_memory_bytes", gauge, "Memory in use.", process.rss_bytes);
  sample("proportional_memory_bytes", gauge, "Memory in use, shared pages divided by their users.",
         process.pss_bytes);
  if (process.cpu_user && process.cpu_system)
    time("cpu_seconds_total", "CPU time.", *process.cpu_user + *process.cpu_system);
  time("cpu_user_seconds_total", "CPU time outside of the kernel.", process.cpu_user);
  time("cpu_system_seconds_total", "CPU time inside of the kernel.", process.cpu_system);
  sample("disk_read_bytes_total", counter, "Read from disks.", process.disk_read_bytes);
  sample("disk_written_bytes_total", counter, "Written to files.", process.disk_written_bytes);
  sample("network_receive_bytes_total", counter, "Received by all interfaces but the loopback.",
         process.network_in_bytes);
  sample("network_transmit_bytes_total", counter, "Sent by all interfaces but the loopback.",
         process.network_out_bytes);
  sample("threads", gauge, "Threads.", process.threads);
  sample("open_fds", gauge, "Open file descriptors.", process.descriptors);
}

std::string metrics::text() const {
  std::string text;
  for (auto& each : families_)
    text +=
        fmt::format("# HELP {} {}\n# TYPE {} {}\n{}", each.name, metric_escaped(each.help, false),
                    each.name, metric_type_name(each.type), each.samples);
  return text;
}

std::string to_prometheus(const run_statistics& run, const metric_labels& labels) {
  metrics all;
  all.add(run, labels);
  return all.text();
}

std::string to_prometheus(const process_statistics& process, const metric_labels& labels) {
  metrics all;
  all.add(process, labels);
  return all.text();
}

}  // namespace lade
