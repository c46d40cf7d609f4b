// Checkpoints are either the old or the new one.

#pragma once

#include <string>
#include <string_view>

// Gives a file new contents as a whole: whoever opens it, also after a crash of the process or of
// the machine, finds either the old or the new ones. Writes PATH.new first. Throws lade::error
// naming the file.
void replace_file(const std::string& path, std::string_view contents);

// Waits until what was written to a file is on the disk. Throws lade::error naming the file.
void sync_file(const std::string& path);
