// A contact sheet of the first images or clips of a batch, to check the input of a trainer.

#pragma once

#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/media/image.hpp>
#include <lade/media/png.hpp>
#include <lade/tensor.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

class contact_sheet {
 public:
  static constexpr std::int64_t most_columns = 10;
  static constexpr std::int64_t most_rows = 8;

  // Lays out the images of a batch that was decoded with `options`; of clips, one row for each,
  // with frames from its whole length.
  contact_sheet(const lade::tensor& batch, const lade::media::image_options& options)
      : options_(options) {
    if (batch.shape().size() == clip_rank)
      lay_out_clips(batch);
    else
      lay_out_images(batch);
  }

  // How many images or clips it shows.
  std::uint64_t items() const noexcept { return static_cast<std::uint64_t>(items_); }

  // Throws lade::error now rather than after the work if a file could not be written.
  static void require_writable(const std::string& path) {
    namespace fs = std::filesystem;
    if (fs::is_directory(path)) lade::raise(EISDIR, "write " + path);
    auto folder = fs::path(path).parent_path();
    auto checked = fs::exists(path) ? fs::path(path) : folder.empty() ? fs::path(".") : folder;
    if (access(checked.c_str(), W_OK) != 0) lade::raise(errno, "write " + path);
  }

  // Throws lade::error naming the file when it cannot be written.
  void save(const std::string& path) const {
    auto png = lade::media::encode_png(sheet_);
    errno = 0;
    std::ofstream file(path, std::ios::binary);
    file << png.text() << std::flush;
    if (!file) lade::raise(errno ? errno : EIO, "write " + path);
  }

 private:
  static constexpr std::int64_t gap = 3;
  static constexpr int background = 255;
  static constexpr std::size_t clip_rank = 5;  // clips, frames, and three of an image

  void lay_out_images(const lade::tensor& batch) {
    items_ = std::min(batch.shape()[0], most_columns * most_rows);
    // A little wider than high, as screens are.
    const auto columns = std::clamp<std::int64_t>(
        std::llround(std::sqrt(1.3 * static_cast<double>(items_))), 1, most_columns);
    make_sheet((items_ + columns - 1) / columns, columns);
    for (std::int64_t i = 0; i < items_; ++i) place(batch[i], i / columns, i % columns);
  }

  void lay_out_clips(const lade::tensor& batch) {
    items_ = std::min(batch.shape()[0], most_rows);
    const auto frames = batch.shape()[1];
    const auto columns = std::min(frames, most_columns);
    make_sheet(items_, columns);
    for (std::int64_t i = 0; i < items_; ++i)
      for (std::int64_t column = 0; column < columns; ++column)
        place(batch[i][column * frames / columns], i, column);
  }

  void make_sheet(std::int64_t rows, std::int64_t columns) {
    sheet_ = lade::tensor(lade::element_type::u8, {gap + rows * (options_.height + gap),
                                                   gap + columns * (options_.width + gap), 3});
    std::memset(sheet_.bytes(), background, sheet_.spec().bytes());
  }

  void place(const lade::tensor& image, std::int64_t row, std::int64_t column) {
    auto top = gap + row * (options_.height + gap);
    auto left = gap + column * (options_.width + gap);
    for (std::int64_t y = 0; y < options_.height; ++y) {
      auto* out = sheet_.data<std::uint8_t>() + (top + y) * sheet_.strides()[0] + left * 3;
      for (std::int64_t x = 0; x < options_.width; ++x)
        for (std::size_t channel = 0; channel < 3; ++channel) *out++ = level(image, y, x, channel);
    }
  }

  // One of the three values of a pixel, as it was before it was normalised.
  std::uint8_t level(const lade::tensor& image, std::int64_t y, std::int64_t x,
                     std::size_t channel) const {
    const auto c = static_cast<std::int64_t>(channel);
    const auto& stride = image.strides();
    if (image.type() == lade::element_type::u8)
      return image.data<std::uint8_t>()[y * stride[0] + x * stride[1] + c * stride[2]];
    auto value = image.data<float>()[c * stride[0] + y * stride[1] + x * stride[2]];
    auto share = value * options_.stddev[channel] + options_.mean[channel];
    return static_cast<std::uint8_t>(std::lround(std::clamp(share, 0.0F, 1.0F) * 255));
  }

  lade::media::image_options options_;
  std::int64_t items_ = 0;
  lade::tensor sheet_;
};
