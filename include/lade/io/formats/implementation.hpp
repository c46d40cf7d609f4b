// The compiled part of lade-formats. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../../io/formats/csv.cpp"
#include "../../../../io/formats/decoder.cpp"
#include "../../../../io/formats/decompress.cpp"
#include "../../../../io/formats/example.cpp"
#include "../../../../io/formats/from_shards.cpp"
#include "../../../../io/formats/indexed_shards.cpp"
#include "../../../../io/formats/json_lines.cpp"
#include "../../../../io/formats/json_reader.cpp"
#include "../../../../io/formats/manifest.cpp"
#include "../../../../io/formats/manifest_rows.cpp"
#include "../../../../io/formats/mapped_file.cpp"
#include "../../../../io/formats/mds.cpp"
#include "../../../../io/formats/mds_column.cpp"
#include "../../../../io/formats/mds_index.cpp"
#include "../../../../io/formats/mds_sample.cpp"
#include "../../../../io/formats/megatron_index.cpp"
#include "../../../../io/formats/new_file.cpp"
#include "../../../../io/formats/protobuf_reader.cpp"
#include "../../../../io/formats/sample_name.cpp"
#include "../../../../io/formats/save_manifest.cpp"
#include "../../../../io/formats/shards.cpp"
#include "../../../../io/formats/tar.cpp"
#include "../../../../io/formats/tar_header.cpp"
#include "../../../../io/formats/tar_index.cpp"
#include "../../../../io/formats/tar_index_file.cpp"
#include "../../../../io/formats/tar_samples.cpp"
#include "../../../../io/formats/tar_walk.cpp"
#include "../../../../io/formats/tar_writer.cpp"
#include "../../../../io/formats/tfrecord.cpp"
#include "../../../../io/formats/token_windows.cpp"
#include "../../../../io/formats/tokens.cpp"
#include "../../../../io/formats/webdataset.cpp"
