// Checkpoints are either the old or the new one, and whole.

#pragma once

#include <string>
#include <string_view>

// Replaces the contents of a file as a whole: a later open, also after a crash of the process or of
// the machine, reads either the old or the new contents. Writes PATH.new first. A checksum follows
// the contents. Throws lade::error naming the file.
void replace_file(const std::string& path, std::string_view contents);

// The contents of a file that replace_file() has written. Throws lade::error naming the file;
// invalid_data if a byte of it is another.
std::string read_file(const std::string& path);

// Blocks until the contents of a file are on the disk. Throws lade::error naming the file.
void sync_file(const std::string& path);
