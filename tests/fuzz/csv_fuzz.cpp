// Reads any bytes as records of CSV. What is read is read the same again when it is written.

#include "../../io/formats/csv.hpp"

#include <lade/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

static std::string written(const std::vector<std::string>& cells) {
  std::string record;
  for (auto& cell : cells) {
    record += record.empty() ? "\"" : ",\"";
    for (char c : cell) record += c == '"' ? std::string("\"\"") : std::string(1, c);
    record += '"';
  }
  return record + "\r\n";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    while (!text.empty()) {
      auto record = text.substr(0, lade::io::csv_record_end(text));
      auto cells = lade::io::parse_csv_record(record, "text", 1);
      auto again = written(cells);
      if (lade::io::csv_record_end(again) != again.size()) std::abort();
      if (lade::io::parse_csv_record(again, "text", 1) != cells) std::abort();
      text.remove_prefix(record.size());
    }
  } catch (const lade::error&) {}
  return 0;
}
