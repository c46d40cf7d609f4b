// The compiled part of lade-formats. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../../io/formats/inflate.cpp"
#include "../../../../io/formats/json_reader.cpp"
#include "../../../../io/formats/npy.cpp"
#include "../../../../io/formats/npy_header.cpp"
#include "../../../../io/formats/npz.cpp"
#include "../../../../io/formats/safetensors.cpp"
#include "../../../../io/formats/safetensors_header.cpp"
#include "../../../../io/formats/wav.cpp"
#include "../../../../io/formats/wav_header.cpp"
#include "../../../../io/formats/zip.cpp"
#include "../../../../io/formats/zip_directory.cpp"
