// Caches indexes of videos in a directory, for later runs.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/media/av/packet_index.hpp>
#include <lade/task.hpp>

#include <optional>
#include <string>

namespace lade::media {

// The path of a file's cached index in `options.index_directory`. Its name is a hash of everything
// that determines the index. Creates the directory; throws error with the system's reason if that
// fails. Empty if nothing shows whether the file has changed.
std::string path_of_kept_index(const byte_reader& file, const video_options& options);

// Returns nothing if there is no index or it is damaged.
task<std::optional<packet_index>> load_kept_index(std::string path);

// Does nothing if the directory is not writable. When the process first writes into the directory,
// it removes partial files older than a day, which killed processes have left. Blocks.
void keep_index(const packet_index& index, const std::string& path);

}  // namespace lade::media
