// Files that arrays.py makes, and values as it describes them.

#pragma once

#include <lade/buffer.hpp>
#include <lade/field.hpp>
#include <lade/tensor.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../../support/buffer_of.hpp"

namespace lade::test {

inline constexpr const char* debians_python = "/usr/bin/python3";

// A Python that has the packages of tests/python-packages.txt; nothing if there is none.
inline std::optional<std::string> packages_python() {
  auto* given = std::getenv("LADE_PACKAGES_PYTHON");
  return given && *given ? std::optional<std::string>(given) : std::nullopt;
}

// Whether Debian's Python has the modules that arrays.py needs for a format.
inline bool have_python(const std::string& modules) {
  auto import = std::string(debians_python) + " -c 'import " + modules + "' 2>/dev/null";
  return std::system(import.c_str()) == 0;
}

struct known_file {
  buffer content;
  std::string described;
};

// The next part that arrays.py has written; false at the end.
inline bool read_part(std::FILE* from, std::string& part) {
  std::uint64_t bytes = 0;
  if (std::fread(&bytes, 8, 1, from) != 1) return false;
  part.resize(bytes);
  if (std::fread(part.data(), 1, bytes, from) != bytes) throw std::runtime_error("arrays.py ended");
  return true;
}

inline std::filesystem::path formats_directory() {
  auto from = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(from / __FILE__) && from != from.root_path())
    from = from.parent_path();
  return std::filesystem::canonical(from / __FILE__).parent_path();
}

inline std::vector<known_file> make_files(const std::string& format, int count, std::uint64_t seed,
                                          const std::string& python = debians_python) {
  const auto script = formats_directory() / "arrays.py";
  const auto line = python + " " + script.string() + " " + format + " " + std::to_string(count) +
                    " " + std::to_string(seed);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(popen(line.c_str(), "r"), pclose);
  std::vector<known_file> files;
  std::string content, described;
  while (read_part(output.get(), content) && read_part(output.get(), described))
    files.push_back({buffer_of(content), described});
  if (files.size() != static_cast<std::size_t>(count)) throw std::runtime_error("failed: " + line);
  return files;
}

// The elements of a tensor in C order.
inline void append_elements(std::string& text, const tensor& of) {
  if (of.rank() == 0) {
    text.append(reinterpret_cast<const char*>(of.bytes()), element_bytes(of.type()));
    return;
  }
  for (std::int64_t i = 0; i < of.shape()[0]; ++i) append_elements(text, of[i]);
}

inline std::string describe(const std::string& as, const tensor& of) {
  std::string text = as + "\n" + std::string(name(of.type())) + "\n";
  for (std::size_t i = 0; i < of.rank(); ++i)
    text += (i > 0 ? " " : "") + std::to_string(of.shape()[i]);
  text += "\n";
  if (of.spec().elements() > 0) append_elements(text, of);
  return text;
}

inline std::string describe(const std::string& as, const buffer& of) {
  return as + "\nbytes\n" + std::to_string(of.size()) + "\n" + std::string(of.text());
}

inline std::string describe(std::span<const field> fields) {
  std::string text;
  for (auto& each : fields)
    text += each.type() == field::kind::tensor ? describe(each.name(), each.tensor())
                                               : describe(each.name(), each.bytes());
  return text;
}

}  // namespace lade::test
