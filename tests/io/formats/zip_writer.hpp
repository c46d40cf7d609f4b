// ZIP archives byte by byte, to be damaged.

#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lade::test {

inline std::string little(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i)
    text += static_cast<char>(i < 8 ? value >> 8 * i & 0xff : 0);
  return text;
}

inline std::string deflated(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string into(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(into.size());
  deflate(&stream, Z_FINISH);
  into.resize(stream.total_out);
  deflateEnd(&stream);
  return into;
}

struct zip_entry {
  zip_entry(std::string called, const std::string& content, bool deflate = false)
      : name(std::move(called)),
        data(deflate ? deflated(content) : content),
        size(content.size()),
        method(deflate ? 8 : 0),
        crc(::crc32(0, reinterpret_cast<const Bytef*>(content.data()),
                    static_cast<uInt>(content.size()))) {}

  std::string name;
  std::string data;
  std::uint64_t size;
  unsigned method;
  std::uint64_t crc;
  unsigned flags = 0;
  std::string extra = {};       // of the local header
  std::string local_name = {};  // if it is another
  std::int64_t moved = 0;       // how far from its header the directory points
};

inline std::string numbers_of(const zip_entry& of) {
  return little(of.flags, 2) + little(of.method, 2) + little(0, 4) + little(of.crc, 4) +
         little(of.data.size(), 4) + little(of.size, 4) + little(of.name.size(), 2);
}

inline std::string zip_of(const std::vector<zip_entry>& entries, const std::string& comment = "") {
  std::string file, directory;
  for (auto& each : entries) {
    auto offset = static_cast<std::uint64_t>(static_cast<std::int64_t>(file.size()) + each.moved);
    file += "PK\3\4" + little(20, 2) + numbers_of(each) + little(each.extra.size(), 2) +
            (each.local_name.empty() ? each.name : each.local_name) + each.extra + each.data;
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + numbers_of(each) + little(0, 12) +
                 little(offset, 4) + each.name;
  }
  auto count = little(entries.size(), 2);
  return file + directory + "PK\5\6" + little(0, 4) + count + count + little(directory.size(), 4) +
         little(file.size(), 4) + little(comment.size(), 2) + comment;
}

}  // namespace lade::test
