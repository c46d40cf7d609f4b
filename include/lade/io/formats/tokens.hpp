// Files of tokens: one long array of integers that is read in windows, of the local disk or by
// ranges.

#pragma once

#include <lade/byte_reader.hpp>
#include <lade/task.hpp>
#include <lade/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade::io {

struct megatron_options {
  // The most bytes of an index that is not mapped: 20 for each document. A larger one is refused
  // with errc::limit_exceeded before memory is allocated.
  std::uint64_t max_index_bytes = std::uint64_t{4} << 30;
};

// The tokens in a file, as one array with perhaps documents in it. Copies share the file.
//
// A local file is mapped, not read: windows in random order touch a page or two each, which the
// page cache keeps for later epochs and for other processes of the machine, and no window is
// copied. So tokens do not count to the memory budget, and must not be written to. A file that is
// made shorter while it is mapped ends the process with SIGBUS when its lost part is touched.
//
// A file behind a URL (see store.hpp), or of any other byte_reader, is read by ranges: each read
// asks for its bytes and no others, into memory of the caller's pool. That is one request to a
// server, or less with a cache (see disk_cache.hpp). An object that is replaced while the file is
// open is refused by its entity tag or its size; one of the same size, from a server that sends no
// strong tags, is not noticed. An index is read as a whole and stays in memory.
//
// Any thread may use it. The machine must store integers low byte first, as the files do; others
// are refused.
class token_file {
 public:
  // Maps a file of nothing but integers of this type, low byte first, as one document. Blocks.
  // Throws error that names the file if it cannot be mapped, if it holds no whole number of
  // integers, or if the type is none of integers, and error(unsupported) for a URL.
  static token_file open(std::string path, element_type type);

  // Maps a data set of Megatron, `prefix`.bin with its index `prefix`.idx of version 1
  // (https://github.com/NVIDIA/Megatron-LM, IndexedDataset). Blocks. Throws error(invalid_data)
  // that names the file and the place for an index that contradicts itself or the size of the .bin,
  // and error(unsupported) for older formats, tokens that are no integers, and a URL.
  static token_file open_megatron(const std::string& prefix);

  const std::string& name() const noexcept;  // the path, or the URL without secrets, of the tokens
  bool is_mapped() const noexcept;           // whether tokens() has them, without waiting
  element_type type() const noexcept;
  std::uint64_t size() const noexcept;  // the number of tokens

  // Document `i` begins at its first token, and ends where the next begins, the last one at size().
  // `i` may be documents().
  std::uint64_t documents() const noexcept;
  std::uint64_t document_begin(std::uint64_t i) const noexcept;

  // Tokens [first, first + count), as a view of the mapping with one dimension. Throws
  // error(invalid_argument) if they are not all there, and error(unsupported) if the file is not
  // mapped.
  tensor tokens(std::uint64_t first, std::uint64_t count) const;

  // The same of any file: a view of a mapped one, otherwise one read of their bytes, which requires
  // a runtime if the reader does. Throws error(invalid_argument) if they are not all there, and
  // what the reader throws: error(invalid_data) if the file has become shorter.
  task<tensor> read(std::uint64_t first, std::uint64_t count) const;

 private:
  struct content;
  friend class token_windows;
  friend task<token_file> open_tokens(std::string name, element_type type);
  friend task<token_file> open_tokens(std::shared_ptr<const byte_reader> from, element_type type);
  friend task<token_file> open_megatron(std::string prefix, megatron_options options);
  friend task<token_file> open_megatron(std::shared_ptr<const byte_reader> bin,
                                        std::shared_ptr<const byte_reader> idx,
                                        megatron_options options);

  explicit token_file(std::shared_ptr<const content> opened) : content_(std::move(opened)) {}

  static task<tensor> read_range(std::shared_ptr<const content> from, std::uint64_t first,
                                 std::uint64_t count);
  void require_tokens(std::uint64_t first, std::uint64_t count) const;
  token_file known_as(std::string_view name) const;
  const std::string& identity() const noexcept;

  std::shared_ptr<const content> content_;
};

// These open what the static functions of token_file open, and throw the same errors. A path is
// mapped, by a thread of the CPU pool; a URL is read by ranges. They require a runtime, those with
// readers only if the readers do.
task<token_file> open_tokens(std::string name, element_type type);
task<token_file> open_megatron(std::string prefix, megatron_options options = {});

// The same of any bytes, which are read by ranges: of an archive's member, or of an object whose
// URL has a query.
task<token_file> open_tokens(std::shared_ptr<const byte_reader> from, element_type type);
task<token_file> open_megatron(std::shared_ptr<const byte_reader> bin,
                               std::shared_ptr<const byte_reader> idx,
                               megatron_options options = {});

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
//   auto file = co_await lade::io::open_megatron("s3://bucket/train");
//   lade::io::token_windows windows(file, {.length = 4096});
//   lade::from_index(windows.size(), std::identity(), {.identity = windows.identity()})
//       | lade::shuffle() | lade::map(lade::io::read_tokens(windows))
//
// Those of a mapped file need no stage:
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

  // Window `i` of a mapped file: a tensor of `length` tokens, which is a view of the mapping unless
  // it is padded. Throws error(invalid_argument) for one that is not there, and error(unsupported)
  // if the file is not mapped.
  tensor operator()(std::uint64_t i) const;

  // Window `i` of any file, the same tensor. Throws error(invalid_argument) for one that is not
  // there, and what token_file::read throws.
  task<tensor> read(std::uint64_t i) const;

  // Where in window `i`, behind its first token, documents begin: for masks of attention.
  std::vector<std::int64_t> document_begins(std::uint64_t i) const;

  // The file and the options in words, to tell windows from others in states. The same for a file
  // that is mapped and for its copy behind a URL. A URL that asks for something in its query is
  // another file, however it is signed; of a reader, only what its name() shows of that counts.
  std::string identity() const;

 private:
  struct place {
    std::uint64_t first;
    std::uint64_t count;  // less than the length if it is to be padded
  };

  std::uint64_t windows_in(std::uint64_t tokens) const noexcept;
  place place_of(std::uint64_t i) const;
  static task<tensor> read_place(token_file file, place where, token_window_options options);

  token_file file_;
  token_window_options options_;
  std::uint64_t windows_ = 0;
  std::vector<std::uint64_t> ends_;  // how many windows are in each document and those before it
};

// A stage's function that reads the window of an index, of any file.
class read_tokens {
 public:
  static constexpr unsigned default_concurrency = 64;  // as of io::read

  explicit read_tokens(token_windows windows) noexcept : windows_(std::move(windows)) {}

  // Throws what token_windows::read throws.
  task<tensor> operator()(std::uint64_t i) const { return windows_.read(i); }

 private:
  token_windows windows_;
};

}  // namespace lade::io
