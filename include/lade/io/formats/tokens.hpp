// Files of tokens: one long array of integers, read in windows from the local disk or by ranges.

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
  // Maximum size of an index that is not mapped, in bytes; an index has 20 bytes per document. A
  // larger index is refused with errc::limit_exceeded before memory is allocated.
  std::uint64_t max_index_bytes = std::uint64_t{4} << 30;
};

// The tokens in a file: one array, possibly divided into documents. Copies share the file.
//
// Local files are mapped, not read. A window in random order touches a page or two, which the page
// cache keeps for later epochs and for other processes of the machine. No window is copied. So
// tokens do not count to the memory budget, and they must not be modified. If a file is truncated
// while it is mapped, an access to the lost part ends the process with SIGBUS.
//
// A file behind a URL (see store.hpp), or of any other byte_reader, is read by ranges. Each read
// requests exactly its bytes, into memory of the caller's pool: one request to a server, or none if
// a cache has them (see disk_cache.hpp). If an object is replaced while the file is open, its
// entity tag or its size reveals that, and reads throw. A replacement of the same size is not
// detected if the server sends no strong tags. An index is read as a whole and stays in memory.
//
// Any thread may use it. Files are little-endian; a big-endian machine is refused.
class token_file {
 public:
  // Maps a file that consists of little-endian integers of this type, as one document. Blocks.
  // Throws error naming the file if it cannot be mapped, if its size is not a multiple of the
  // integer's, and if the type is not an integer. Throws error(unsupported) for a URL.
  static token_file open(std::string path, element_type type);

  // Maps a data set of Megatron: `prefix`.bin with its index `prefix`.idx of version 1
  // (https://github.com/NVIDIA/Megatron-LM, IndexedDataset). Blocks. Throws error(invalid_data)
  // naming the file and the position for an index that contradicts itself or the size of the .bin.
  // Throws error(unsupported) for older formats, tokens that are not integers, and a URL.
  static token_file open_megatron(const std::string& prefix);

  const std::string& name() const noexcept;  // path of the tokens, or URL without secrets
  bool is_mapped() const noexcept;           // whether tokens() can be called
  element_type type() const noexcept;
  std::uint64_t size() const noexcept;  // number of tokens

  // The position of the first token of document `i`. A document ends where the next one begins, the
  // last one at size(). `i` may be documents().
  std::uint64_t documents() const noexcept;
  std::uint64_t document_begin(std::uint64_t i) const noexcept;

  // Returns the tokens [first, first + count) of a mapped file, as a view of the mapping with one
  // dimension. Throws error(invalid_argument) if the range exceeds the file, and error(unsupported)
  // if the file is not mapped.
  tensor tokens(std::uint64_t first, std::uint64_t count) const;

  // The same for any file: a view of a mapped file; otherwise one read of the bytes, which requires
  // a runtime if the reader requires one. Throws error(invalid_argument) if the range exceeds the
  // file, and as the reader does: error(invalid_data) if the file has become shorter.
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

// These open the same files as the static functions of token_file, and throw the same errors. A
// path is mapped by a thread of the CPU pool; a URL is read by ranges. The functions with names
// require a runtime; the functions with readers require one if the readers do.
task<token_file> open_tokens(std::string name, element_type type);
task<token_file> open_megatron(std::string prefix, megatron_options options = {});

// The same for any readers, read by ranges: for members of archives, or objects whose URLs have
// queries.
task<token_file> open_tokens(std::shared_ptr<const byte_reader> from, element_type type);
task<token_file> open_megatron(std::shared_ptr<const byte_reader> bin,
                               std::shared_ptr<const byte_reader> idx,
                               megatron_options options = {});

struct token_window_options {
  std::uint64_t length = 0;  // tokens in each window, 1 to 2^48; required

  // Tokens from the begin of a window to the begin of the next, up to 2^48. 0: `length`, for
  // windows without overlap. For targets that are the next token: {.length = 2049, .stride = 2048}.
  std::uint64_t stride = 0;

  // Whether a window may span several documents. If false, each document has its own windows, which
  // start at its first token.
  bool cross_documents = true;

  // Whether the rest of the file, or of each document, that is shorter than a window is filled up
  // with `padding`. If false, the rest is dropped.
  bool pad = false;
  std::int64_t padding = 0;
};

// The windows of a file of tokens, by index, with exact shuffle, shard and checkpoints at no cost:
//
//   auto file = co_await lade::io::open_megatron("s3://bucket/train");
//   lade::io::token_windows windows(file, {.length = 4096});
//   lade::from_index(windows.size(), std::identity(), {.identity = windows.identity()})
//       | lade::shuffle() | lade::map(lade::io::read_tokens(windows))
//
// A mapped file needs no reading stage:
//
//   auto file = lade::io::token_file::open_megatron("train");
//   lade::io::token_windows windows(file, {.length = 4096});
//   lade::from(windows) | lade::shuffle()
//
// Allocates 8 bytes per document if windows do not cross documents. Any thread may use it.
class token_windows {
 public:
  // Throws error(invalid_argument) for a length or stride out of range, and for padding that the
  // type cannot hold.
  token_windows(token_file file, const token_window_options& options);

  std::uint64_t size() const noexcept;

  // Returns window `i` of a mapped file: a tensor of `length` tokens. It is a view of the mapping;
  // a padded window is a copy. Throws error(invalid_argument) if `i` is out of range, and
  // error(unsupported) if the file is not mapped.
  tensor at(std::uint64_t i) const;
  tensor operator()(std::uint64_t i) const { return at(i); }

  // Returns the same window of any file. Throws error(invalid_argument) if `i` is out of range, and
  // as token_file::read does.
  task<tensor> read(std::uint64_t i) const;

  // Returns the positions in window `i`, after its first token, at which documents begin: for
  // attention masks.
  std::vector<std::int64_t> document_begins(std::uint64_t i) const;

  // Returns a text of the file and the options, which checkpoints compare. A mapped file and its
  // copy behind a URL have the same identity. URLs with different queries are different files,
  // apart from their signatures. For a reader, only the query in its name() counts.
  std::string identity() const;

 private:
  struct place {
    std::uint64_t first;
    std::uint64_t count;  // less than the length if it is padded
  };

  std::uint64_t windows_in(std::uint64_t tokens) const noexcept;
  place place_of(std::uint64_t i) const;
  static task<tensor> read_place(token_file file, place where, token_window_options options);

  token_file file_;
  token_window_options options_;
  std::uint64_t windows_ = 0;
  std::vector<std::uint64_t> ends_;  // number of windows up to the end of each document
};

// A function for map that reads the window of an index, of any file.
class read_tokens {
 public:
  static constexpr unsigned default_concurrency = 64;  // as of io::read

  explicit read_tokens(token_windows windows) noexcept : windows_(std::move(windows)) {}

  // Throws as token_windows::read does.
  task<tensor> operator()(std::uint64_t i) const { return windows_.read(i); }

 private:
  token_windows windows_;
};

}  // namespace lade::io
