// A picture of the first images of a batch, to see what a trainer gets.

#pragma once

#include <lade/buffer.hpp>
#include <lade/error.hpp>
#include <lade/media/image.hpp>
#include <lade/media/png.hpp>
#include <lade/tensor.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
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

  // Lays out the images of a batch that was decoded with `how`.
  contact_sheet(const lade::tensor& batch, const lade::media::image_options& how)
      : how_(how), images_(std::min(batch.shape()[0], most_columns * most_rows)) {
    // A little wider than high, as screens are.
    columns_ = std::clamp<std::int64_t>(std::llround(std::sqrt(1.3 * static_cast<double>(images_))),
                                        1, most_columns);
    rows_ = (images_ + columns_ - 1) / columns_;
    sheet_ = lade::tensor(lade::element_type::u8, {gap + rows_ * (how.height + gap),
                                                   gap + columns_ * (how.width + gap), 3});
    std::memset(sheet_.bytes(), background, sheet_.spec().bytes());
    for (std::int64_t i = 0; i < images_; ++i) place(batch[i], i / columns_, i % columns_);
  }

  // How many of them it shows.
  std::uint64_t images() const noexcept { return static_cast<std::uint64_t>(images_); }

  // Throws lade::error now rather than after the work if a file could not be written.
  static void require_writable(const std::string& path) {
    namespace fs = std::filesystem;
    if (fs::is_directory(path)) lade::raise(EISDIR, "write " + path);
    auto folder = fs::path(path).parent_path();
    auto asked = fs::exists(path) ? fs::path(path) : folder.empty() ? fs::path(".") : folder;
    if (access(asked.c_str(), W_OK) != 0) lade::raise(errno, "write " + path);
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

  void place(const lade::tensor& image, std::int64_t row, std::int64_t column) {
    auto top = gap + row * (how_.height + gap);
    auto left = gap + column * (how_.width + gap);
    for (std::int64_t y = 0; y < how_.height; ++y) {
      auto* out = sheet_.data<std::uint8_t>() + (top + y) * sheet_.strides()[0] + left * 3;
      for (std::int64_t x = 0; x < how_.width; ++x)
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
    auto share = value * how_.stddev[channel] + how_.mean[channel];
    return static_cast<std::uint8_t>(std::lround(std::clamp(share, 0.0F, 1.0F) * 255));
  }

  lade::media::image_options how_;
  std::int64_t images_;
  std::int64_t columns_ = 1;
  std::int64_t rows_ = 1;
  lade::tensor sheet_;
};
