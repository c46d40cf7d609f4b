// The report of a loader of images or videos at its end.

#pragma once

#include <lade/batch.hpp>
#include <lade/media/image.hpp>
#include <lade/stats.hpp>
#include <lade/tensor.hpp>

#include "contact_sheet.hpp"
#include "options.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

class report {
 public:
  // `sheet_file` is the file for a picture of the first batch, or empty. Throws lade::error if
  // it could not be written. The pictures are decoded with `images`. `program` must outlive the
  // report.
  report(const loader& program, std::string sheet_file, const lade::media::image_options& images);

  void record(const lade::sample_batch& batch);

  std::uint64_t items() const noexcept { return items_; }

  // Adds a row to the report. print() calls `text`.
  void add_row(std::string_view name, std::function<std::string()> text);

  // Prints the table of stages, which of them limited the run, and the figures.
  void print(const lade::run_statistics& run, const lade::table_options& shown);

  // Writes the contact sheet, if one was requested, and prints its name.
  void save_contact_sheet() const;

 private:
  const loader& program_;
  lade::tensor_spec spec_;  // of the largest batch: others lack samples that failed
  std::size_t largest_ = 0;
  std::uint64_t items_ = 0;
  std::uint64_t batches_ = 0;
  std::string sheet_file_;
  lade::media::image_options image_options_;
  std::optional<contact_sheet> sheet_;
  std::vector<std::pair<std::string, std::function<std::string()>>> rows_;
};

// Prints a row of the report.
void print_row(std::string_view name, const std::string& text);

// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);

// "1 image", "2,000 images".
std::string count_of(std::uint64_t number, std::string_view one, std::string_view many);
