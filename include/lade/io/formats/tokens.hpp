// Files of tokens: one long array of integers that is read in windows.

#pragma once

#include <lade/buffer.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lade::io {

// The tokens in a file, as one array with perhaps documents in it. Copies share the mapping.
//
// The file is mapped, not read: windows in random order touch a page or two each, which the page
// cache keeps for later epochs and for other processes of the machine, and no window is copied. So
// tokens do not count to the memory budget, and must not be written to. A file that is made shorter
// while it is mapped ends the process with SIGBUS when its lost part is touched.
//
// Any thread may use it. Opening blocks. The machine must store integers low byte first, as the
// files do; others are refused.
class token_file {
 public:
  // A file of nothing but integers of this type, low byte first, as one document. Throws error that
  // names the file if it cannot be mapped, if it holds no whole number of integers, or if the type
  // is none of integers.
  static token_file open(std::string path, element_type type);

  // A data set of Megatron, `prefix`.bin with its index `prefix`.idx of version 1
  // (https://github.com/NVIDIA/Megatron-LM, IndexedDataset). Throws error(invalid_data) that names
  // the file and the place for an index that contradicts itself or the size of the .bin, and
  // error(unsupported) for older formats and tokens that are no integers.
  static token_file open_megatron(const std::string& prefix);

  const std::string& name() const noexcept;  // the path of the file of tokens
  element_type type() const noexcept;
  std::uint64_t size() const noexcept;  // the number of tokens

  // Document `i` begins at its first token, and ends where the next begins, the last one at size().
  // `i` may be documents().
  std::uint64_t documents() const noexcept;
  std::uint64_t document_begin(std::uint64_t i) const noexcept;

  // Tokens [first, first + count), as a view of the mapping with one dimension. Throws
  // error(invalid_argument) if they are not all there.
  tensor tokens(std::uint64_t first, std::uint64_t count) const;

 private:
  struct content;

  explicit token_file(std::shared_ptr<const content> mapped) : content_(std::move(mapped)) {}

  std::shared_ptr<const content> content_;
};

struct token_window_options {
  std::uint64_t length = 0;  // the number of tokens in each window; required

  // How many tokens after one window the next begins. 0: `length`, so that they do not overlap. For
  // targets that are the next token: {.length = 2049, .stride = 2048}.
  std::uint64_t stride = 0;

  // Whether a window may begin in one document and end in another. If false, windows begin anew
  // with each document.
  bool cross_documents = true;

  // The rest of the file, or of each document, that is shorter than a window: left out, or filled
  // up with `padding`.
  bool pad = false;
  std::int64_t padding = 0;
};

// The windows of a file of tokens, by index, so that shuffle, shard and states are exact and free:
//
//   auto file = lade::io::token_file::open_megatron("train");
//   lade::io::token_windows windows(file, {.length = 4096});
//   lade::from_index(windows.size(), windows, {.identity = windows.identity()})
//       | lade::shuffle()
//
// Keeps 8 bytes for each document if windows do not cross them. Any thread may use it.
class token_windows {
 public:
  // Throws error(invalid_argument) for a length of 0, or padding that the type cannot hold.
  token_windows(token_file file, const token_window_options& options);

  std::uint64_t size() const noexcept;

  // Window `i`: a tensor of `length` tokens, which is a view of the mapping unless it is padded.
  // Throws error(invalid_argument) for one that is not there.
  tensor operator()(std::uint64_t i) const;

  // Where in window `i`, behind its first token, documents begin: for masks of attention.
  std::vector<std::int64_t> document_begins(std::uint64_t i) const;

  // The file and the options in words, to tell windows from others in states.
  std::string identity() const;

 private:
  struct place {
    std::uint64_t first;
    std::uint64_t count;  // less than the length if it is to be padded
  };

  std::uint64_t windows_in(std::uint64_t tokens) const noexcept;
  place place_of(std::uint64_t i) const;
  tensor padded(const tensor& tokens) const;

  token_file file_;
  token_window_options options_;
  std::uint64_t windows_ = 0;
  std::vector<std::uint64_t> ends_;  // how many windows are in each document and those before it
};

}  // namespace lade::io
