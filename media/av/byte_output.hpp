// Outputs of FFmpeg's muxers: a file, or memory.

#pragma once

#include <lade/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace lade::media {

// Random access for FFmpeg's callbacks, which block. One thread at a time.
class byte_output {
 public:
  virtual ~byte_output() = default;

  // Whether writes may have other offsets than the number of bytes written.
  virtual bool can_seek() const noexcept = 0;

  virtual void write(std::span<const std::byte> bytes, std::uint64_t offset) = 0;

  // Fills `into` with written bytes from `offset` on. Returns the number of bytes: fewer only at
  // the end.
  virtual std::size_t read(std::span<std::byte> into, std::uint64_t offset) = 0;

  virtual std::uint64_t size() const noexcept = 0;

  // Makes the written data durable and visible.
  virtual void finish() = 0;
};

// Resolves symbolic links at the end of a path; the target need not exist.
std::string behind_links(const std::string& path);

// A file that is renamed to its name when it is complete; see muxer. Throws errors that name it,
// and error(invalid_argument) for an empty path.
class file_output final : public byte_output {
 public:
  explicit file_output(std::string path) : file_output(path, behind_links(path) + ".part") {}

  // `part`: the temporary name, in the directory of behind_links(path).
  file_output(std::string path, std::string part);
  file_output(const file_output&) = delete;
  file_output& operator=(const file_output&) = delete;
  ~file_output() override;

  bool can_seek() const noexcept override { return !part_.empty(); }
  void write(std::span<const std::byte> bytes, std::uint64_t offset) override;
  std::size_t read(std::span<std::byte> into, std::uint64_t offset) override;
  std::uint64_t size() const noexcept override { return size_; }
  void finish() override;

 private:
  void open_part();
  void set_mode(unsigned mode);
  [[noreturn]] void fail(int reason) const;

  std::string path_;
  std::string part_;              // empty if `path_` is no regular file
  std::optional<unsigned> mode_;  // the permissions of the file that is replaced
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

// Memory of the calling stage.
class memory_output final : public byte_output {
 public:
  bool can_seek() const noexcept override { return true; }
  void write(std::span<const std::byte> bytes, std::uint64_t offset) override;
  std::size_t read(std::span<std::byte> into, std::uint64_t offset) override;
  std::uint64_t size() const noexcept override { return size_; }
  void finish() override {}

  buffer content() const { return memory_.slice(0, size_); }

 private:
  void reserve(std::size_t bytes);

  buffer memory_;
  std::size_t size_ = 0;
};

}  // namespace lade::media
