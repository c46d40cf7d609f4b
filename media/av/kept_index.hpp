// Indexes of videos that are kept in a directory for later runs.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/media/av/packet_index.hpp>
#include <lade/task.hpp>

#include <optional>
#include <string>

namespace lade::media {

// Where the index of a file is kept: a file of `options.index_directory`, whose name is made of all
// that decides what the index is. Creates the directory. Empty if nothing tells whether the file
// has changed. Throws error with the system's reason for a directory that cannot be created.
std::string path_of_kept_index(const byte_reader& file, const video_options& options);

// Empty if there is none, or it is damaged.
task<std::optional<packet_index>> load_kept_index(std::string path);

// Does nothing if the directory cannot be written. Removes files of its writers that were killed,
// if they are older than a day, when the process first writes into the directory. Blocks.
void keep_index(const packet_index& index, const std::string& path);

}  // namespace lade::media
