// The shared parts of the loaders of images and videos, beside their command lines: the files, a
// run with a progress bar, and the report.

#pragma once

#include <lade/lade.hpp>

#include "options.hpp"
#include "report.hpp"
#include "skipped.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The files below the directory that match a pattern. Throws if there are none. If bad directories
// are skipped, records directories that cannot be read in `without`.
std::vector<lade::sample> find_files(const loader& program, const options& settings,
                                     std::string_view pattern, skipped& without);

lade::runtime_options runtime_options(const options& settings);

// How many files and classes there are: "6 videos, 2 classes".
std::string describe_files(const loader& program, const std::vector<lade::sample>& files);

// Prints the input and the threads of the run.
void print_heading(const options& settings, const std::string& heading,
                   const lade::runtime& runtime);

// Runs the batches, with a progress bar, until the end or Ctrl-C, and prints the report. `items`:
// the number per epoch; 0 if unknown. Throws the failure of the run, and if there was no item at
// all.
void run_loader(const loader& program, const options& settings, lade::runtime& runtime,
                const lade::pipeline<lade::sample_batch>& batches, std::uint64_t items,
                report& result, skipped& without);

// The body of main(): calls `load` with the options of the command line.
int run_program(const loader& program, int argc, char** argv,
                void (*load)(const options& settings));
