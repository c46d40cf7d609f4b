// The compiled part of lade. To use lade without building a library, include this in exactly
// one .cpp file of the program. Image decoding has its own: lade/media/implementation.hpp.

#pragma once

#include "../../lib/buffer.cpp"
#include "../../lib/error.cpp"
#include "../../lib/tensor.cpp"
