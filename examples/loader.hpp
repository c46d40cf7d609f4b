// What the loaders of images and videos share, beside their command lines: files in, a run with a
// progress bar, a report out.

#pragma once

#include <lade/lade.hpp>

#include "options.hpp"
#include "report.hpp"
#include "skipped.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The files below the directory that match a pattern. Throws if there are none. Of directories that
// cannot be read, `without` is told if bad ones are to be skipped.
std::vector<lade::sample> find_files(const loader& program, const options& settings,
                                     std::string_view pattern, skipped& without);

lade::runtime_options runtime_options(const options& settings);

// How many files and classes there are: "6 videos, 2 classes".
std::string describe_files(const loader& program, const std::vector<lade::sample>& files);

// Says what is loaded, and by what threads.
void print_heading(const options& settings, const std::string& heading,
                   const lade::runtime& runtime);

// Runs the batches, with a progress bar, until the end or Ctrl-C, and prints the report. `items`:
// how many an epoch has; 0 if unknown. Throws what fails the run, and if there was no item at all.
void run_loader(const loader& program, const options& settings, lade::runtime& runtime,
                const lade::pipeline<lade::sample_batch>& batches, std::uint64_t items,
                report& result, skipped& without);

// What main() is: `load` gets the options of the command line.
int run_program(const loader& program, int argc, char** argv,
                void (*load)(const options& settings));
