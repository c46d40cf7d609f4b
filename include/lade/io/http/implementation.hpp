// The compiled part of lade-http. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../../io/http/library.cpp"
