// The compiled part of lade-filters. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
//   lade/media/implementation.hpp
//   lade/media/av/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../../media/filters/filter_check.cpp"
#include "../../../../media/filters/filter_graph.cpp"
#include "../../../../media/filters/filter_text.cpp"
