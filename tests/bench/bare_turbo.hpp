// The bare loop's threads with libjpeg-turbo, each of which decodes one image after another.

#pragma once

#include <array>

#include "bare_images.hpp"
#include "bare_jpeg.hpp"
#include "batch_pair.hpp"

namespace bench {

// What a thread keeps from image to image.
class turbo_worker {
 public:
  explicit turbo_worker(const image_settings& with) : with_(with), out_(with) {}

  void work(image_queue& queue, batch_pair& batches) {
    for (std::size_t index; queue.take(index); batches.filled(index))
      run(queue.path(index), index, batches.slot(index));
  }

 private:
  void run(const std::string& path, std::size_t index, std::byte* slot) {
    jpeg_.open(file_.read(path));
    if (with_.what == transform::decode) {
      decode_all();
    } else {
      view from = view_of(with_, jpeg_.width(), jpeg_.height(), index);
      if (with_.fast && jpeg_.is_420())
        from_planes(from, slot);
      else
        from_rgb(from, slot);
      flush_floats();
    }
    jpeg_.close();
  }

  // libjpeg-turbo's own full decode to RGB, as an application would call it, and nothing else.
  void decode_all() {
    jpeg_.start_rgb(0, jpeg_.width(), 0);
    std::size_t stride = jpeg_.row_bytes();
    rows_.resize(stride * static_cast<std::size_t>(jpeg_.height()));
    while (!jpeg_.at_end()) {
      std::uint8_t* rows[16];
      auto left = static_cast<std::size_t>(jpeg_.height() - jpeg_.next_row());
      for (std::size_t i = 0; i < 16; ++i)
        rows[i] = rows_.data() + stride * (static_cast<std::size_t>(jpeg_.next_row()) + i);
      jpeg_.read_rows({rows, std::min<std::size_t>(16, left)});
    }
  }

  void from_rgb(const view& from, std::byte* slot) {
    from.across.set(across_, from.mirrored);
    from.down.set(down_, false);
    int left = jpeg_.start_rgb(across_.begin(), across_.end(), down_.begin());
    y_.begin(across_, down_, 3, left, down_.begin());
    row_block rows(rows_, jpeg_.row_bytes());
    while (!y_.finished()) {
      int count = jpeg_.read_rows({rows.at, 16});
      for (int i = 0; i < count; ++i) {
        y_.put(rows.at[i]);
        while (y_.ready()) {
          int row = y_.next_output();
          std::uint8_t* out = out_.rgb_row(slot, row);
          y_.take<20>(out);
          out_.finish_rgb(out, slot, row);
        }
      }
    }
  }

  void from_planes(const view& from, std::byte* slot) {
    from.across.set(across_, from.mirrored);
    from.down.set(down_, false);
    from.across.halved((jpeg_.width() + 1) / 2).set(chroma_across_, from.mirrored);
    from.down.halved((jpeg_.height() + 1) / 2).set(chroma_down_, false);
    jpeg_.start_planes();
    y_.begin(across_, down_, 1, 0, 0);
    u_.begin(chroma_across_, chroma_down_, 1, 0, 0);
    v_.begin(chroma_across_, chroma_down_, 1, 0, 0);
    row_block rows(rows_, static_cast<std::size_t>(jpeg_.width() + 15) / 16 * 16);
    std::uint8_t **y = rows.at, **u = y + 16, **v = y + 24;
    while (!v_.finished()) {
      jpeg_.read_planes(y, u, v);
      for (int i = 0; i < 8; ++i) u_.put(u[i]);
      for (int i = 0; i < 8; ++i) v_.put(v[i]);
      for (int i = 0; i < 16; ++i) {
        y_.put(y[i]);
        while (y_.ready() && u_.ready() && v_.ready()) finish_yuv_row(slot);
      }
    }
  }

  // As many rows as libjpeg-turbo gives at a time, of one image or of three planes.
  struct row_block {
    row_block(std::vector<std::uint8_t>& memory, std::size_t row_bytes) {
      std::size_t stride = row_bytes + row_slack;
      if (memory.size() < stride * 32) memory.resize(stride * 32);
      for (std::size_t i = 0; i < 32; ++i) at[i] = memory.data() + stride * i;
    }
    std::uint8_t* at[32];
  };

  void finish_yuv_row(std::byte* slot) {
    int row = y_.next_output();
    std::uint8_t* out = out_.rgb_row(slot, row);
    y_.take<16>(yuv_[0].data());
    u_.take<16>(yuv_[1].data());
    v_.take<16>(yuv_[2].data());
    yuv_to_rgb(yuv_[0].data(), yuv_[1].data(), yuv_[2].data(), out, size);
    out_.finish_rgb(out, slot, row);
  }

  image_settings with_;
  image_rows out_;
  file_bytes file_;
  jpeg_reader jpeg_;
  std::vector<std::uint8_t> rows_;
  axis across_, down_, chroma_across_, chroma_down_;
  row_resizer y_, u_, v_;  // y_ serves RGB as well
  std::array<std::array<std::int16_t, size + row_slack>, 3> yuv_;
};

}  // namespace bench
