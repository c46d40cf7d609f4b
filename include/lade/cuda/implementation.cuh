// The kernels of lade-cuda. To use it without building a library, include this in
// exactly one .cu file of the program.
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../cuda/convert.cu"
#include "../../../cuda/copy.cu"
#include "../../../cuda/layout.cu"
#include "../../../cuda/resample.cu"
