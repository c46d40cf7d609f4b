// What image_loader says at its end.

#pragma once

#include <lade/batch.hpp>
#include <lade/stats.hpp>
#include <lade/tensor.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

class report {
 public:
  using clock = std::chrono::steady_clock;

  void note_batch(const lade::sample_batch& batch);
  void note_contact_sheet(const std::string& file, std::int64_t images);

  std::uint64_t images() const noexcept { return images_; }

  // Prints the table of stages, which of them limited the run, the figures, and what was skipped.
  void print(const lade::run_statistics& run, const std::vector<lade::failure_record>& failures);

 private:
  clock::time_point started_ = clock::now();
  std::optional<clock::duration> first_batch_;
  std::optional<lade::tensor_spec> spec_;  // of the first batch
  std::uint64_t images_ = 0;
  std::uint64_t batches_ = 0;
  std::string contact_sheet_;
};

// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);

// "1 image", "2,000 images".
std::string count_of(std::uint64_t number, const std::string& one, const std::string& many);
