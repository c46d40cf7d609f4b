#include "report.hpp"

#include <lade/printable.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <utility>

std::string grouped(std::uint64_t number) {
  auto text = fmt::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string count_of(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

static double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

static std::string short_time(double seconds) {
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1000) : fmt::format("{:.1f} s", seconds);
}

// With line breaks instead of some spaces, so that no line is longer than `columns`.
static std::string wrapped(std::string text, std::size_t columns) {
  for (std::size_t begin = 0; text.size() - begin > columns;) {
    auto space = text.rfind(' ', begin + columns);
    if (space == text.npos || space < begin) break;
    text[space] = '\n';
    begin = space + 1;
  }
  return text;
}

void print_row(std::string_view name, const std::string& text) {
  fmt::print("{:<14} {}\n", name, text);
}

// The rate of a stage in bytes; empty if there is no such stage.
static std::string megabytes_of(const lade::run_statistics& run, std::string_view stage,
                                std::string_view direction) {
  auto found = std::ranges::find(run.stages, stage, &lade::stage_statistics::name);
  if (found == run.stages.end() || found->bytes == 0) return {};
  return fmt::format(", {:.1f} MB/s {}",
                     static_cast<double>(found->bytes) / 1e6 / seconds_of(run.elapsed), direction);
}

report::report(const loader& program, std::string sheet_file,
               const lade::media::image_options& images)
    : program_(program), sheet_file_(std::move(sheet_file)), image_options_(images) {
  if (!sheet_file_.empty()) contact_sheet::require_writable(sheet_file_);
}

void report::record(const lade::sample_batch& batch) {
  if (batches_ == 0 && !sheet_file_.empty()) sheet_.emplace(batch.tensor(), image_options_);
  if (batch.size() > largest_) {
    largest_ = batch.size();
    spec_ = batch.tensor().spec();
  }
  items_ += batch.size();
  ++batches_;
}

void report::add_row(std::string_view name, std::function<std::string()> text) {
  rows_.emplace_back(name, std::move(text));
}

void report::print(const lade::run_statistics& run, const lade::table_options& shown) {
  auto cpu_seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  fmt::print("\n{}\n{}\n\n", lade::table(run, shown), wrapped(lade::verdict(run), 100));
  if (items_ > 0) {
    auto seconds = seconds_of(run.elapsed);
    auto items = static_cast<double>(items_);
    print_row(program_.many, fmt::format("{} in {}, {} {}", grouped(items_),
                                         count_of(batches_, "batch", "batches"), name(spec_.type),
                                         to_string(spec_.shape)));
    print_row("time", fmt::format("{}, the first batch after {}", short_time(seconds),
                                  short_time(seconds_of(run.first_item))));
    print_row("speed", fmt::format("{} {}/s", grouped(static_cast<std::uint64_t>(items / seconds)),
                                   program_.many) +
                           megabytes_of(run, "read", "read") +
                           megabytes_of(run, program_.decode, "decoded") +
                           megabytes_of(run, program_.decode_batch, "decoded"));
    print_row("CPU",
              fmt::format("{:.2f} s per 1,000 {}", cpu_seconds * 1000 / items, program_.many));
  }
  for (const auto& [direction, text] : rows_) print_row(direction, text());
}

void report::save_contact_sheet() const {
  if (!sheet_) return;
  sheet_->save(sheet_file_);
  print_row("contact sheet", fmt::format("{}, {}", lade::printable(sheet_file_),
                                         count_of(sheet_->items(), program_.one, program_.many)));
}
