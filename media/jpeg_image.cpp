#include "jpeg_image.hpp"

#include <algorithm>

namespace lade::media {

static std::uint64_t bit_position(const std::uint8_t* at) noexcept {
  return std::uint64_t{reinterpret_cast<std::uintptr_t>(at)} * 8;
}

static int ceil_divide(int a, int b) noexcept { return (a + b - 1) / b; }

bool jpeg_image::open(std::span<const std::byte> file, jpeg_table_cache& tables,
                      std::int64_t max_pixels) {
  close();
  if (prepare(file, tables, max_pixels)) return true;
  close();
  return false;
}

bool jpeg_image::prepare(std::span<const std::byte> file, jpeg_table_cache& tables,
                         std::int64_t max_pixels) {
  const auto headers = read_jpeg_headers(file);
  if (!headers || std::int64_t{headers->width} * headers->height > max_pixels) return false;
  headers_ = *headers;
  auto scan = file.subspan(headers_.scan);
  scan = scan.first(std::min(scan.size(), headers_.most_scan_bytes()));
  columns_ = headers_.columns();
  rows_ = headers_.rows();
  if (!unstuff({reinterpret_cast<const std::uint8_t*>(scan.data()), scan.size()})) return false;
  reduce(1);
  return find_tables(tables);
}

// As in libjpeg-turbo (jdmaster.c, jpeg_calc_output_dimensions).
void jpeg_image::reduce(int reduction) noexcept {
  for (std::size_t c = 0; c < sides_.size(); ++c) {
    sides_[c] = 8 / reduction;
    const auto doubles = [&](int factor, int most) {
      return most * (8 / reduction) % (factor * sides_[c] * 2) == 0;
    };
    while (sides_[c] < 8 && doubles(across(c), headers_.across) && doubles(down(c), headers_.down))
      sides_[c] *= 2;
  }
}

// Stores the segments one after the other. The end of a segment is later compared with the position
// of decoding.
bool jpeg_image::unstuff(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t behind = 1024;  // zeros that the kernel may read past the end
  auto* to = scan_.reserve(bytes.size() + behind);
  const auto begin = bit_position(to);
  segment_ends_.clear();
  const auto* from = bytes.data();
  const auto* const end = from + bytes.size();
  for (unsigned restart = 0;; ++restart) {
    from = kernels_->unstuff(from, end, to);
    segment_ends_.push_back(bit_position(to));
    if (end - from < 2) return false;
    constexpr int rst0 = 0xd0, eoi = 0xd9;
    if (from[1] == eoi) break;
    if (restart == headers_.restarts() || from[1] != rst0 + restart % 8) return false;
    from += 2;
  }
  std::fill_n(to, behind - 64, std::uint8_t{0});
  stream_.position = begin;
  stream_.limit = (segment_ends_.back() + 256) / 8;
  return true;
}

// Tables whose entries hold two symbols pay off unless the image is small.
bool jpeg_image::find_tables(jpeg_table_cache& tables) {
  constexpr std::uint64_t large = 8 * 65536;
  const bool pair = segment_ends_.back() - stream_.position > large;
  for (std::size_t c = 0; c < static_cast<std::size_t>(headers_.count); ++c) {
    const auto& code = headers_.components[c].ac;
    const bool is_code_of_last =
        c > 0 && code.symbols.data() == headers_.components[c - 1].ac.symbols.data();
    dc_[c] = tables.dc(headers_.components[c].dc);
    ac_[c] = is_code_of_last ? ac_[c - 1] : tables.ac(code, pair);
    if (dc_[c] == nullptr || ac_[c] == nullptr) return false;
  }
  return true;
}

void jpeg_image::order_blocks() noexcept {
  const auto first = static_cast<std::size_t>(headers_.across * headers_.down);
  const auto blocks = static_cast<std::size_t>(headers_.blocks());
  std::array<jpeg_block, jpeg_most_blocks> order;
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto c = i < first ? 0 : i - first + 1;
    order[i] = {.dc = dc_[c].get(), .ac = ac_[c].get(), .component = c};
  }
  stream_.begin_image(std::span(order).first(blocks));
}

int jpeg_image::plane_width(std::size_t c) const noexcept {
  return ceil_divide(headers_.width * across(c) * sides_[c], headers_.across * 8);
}

int jpeg_image::plane_height(std::size_t c) const noexcept {
  return ceil_divide(headers_.height * down(c) * sides_[c], headers_.down * 8);
}

int jpeg_image::columns_of_first(std::size_t c) const noexcept {
  return headers_.across * sides_[0] / (across(c) * sides_[c]);
}

int jpeg_image::rows_of_first(std::size_t c) const noexcept {
  return headers_.down * sides_[0] / (down(c) * sides_[c]);
}

int jpeg_image::rows_above(std::size_t c, int bottom) const noexcept {
  const int of_mcu = down(c) * sides_[c];
  return std::min(plane_height(c), ceil_divide(bottom, mcu_height()) * of_mcu);
}

static constexpr std::size_t plane_padding = jpeg_kernels::row_padding;
static constexpr std::size_t most_of_small = std::size_t{1} << 20;  // bytes of planes

static std::size_t stride_of(std::size_t samples) noexcept {
  return (samples + 2 * plane_padding + 63) / 64 * 64;
}

static std::size_t plane_bytes(const jpeg_headers& headers, int rows_of_mcus) noexcept {
  const auto across = static_cast<std::size_t>(headers.columns()) * 8;
  const auto down = static_cast<std::size_t>(rows_of_mcus) * 8;
  const auto first = stride_of(across * static_cast<std::size_t>(headers.across)) * down *
                     static_cast<std::size_t>(headers.down);
  const auto others = static_cast<std::size_t>(headers.count - 1);
  return plane_padding + first + others * stride_of(across) * down;
}

// Must agree with begin(), for the whole image or a part of it.
std::size_t jpeg_image::most_plane_bytes(const jpeg_headers& headers, int kept) noexcept {
  const int more = headers.down > 1 ? headers.down : 0;
  const int few = (kept + 2 * more) / (8 * headers.down) + 2 + headers.mcu_rows_per_group;
  const auto all = plane_bytes(headers, headers.rows());
  return std::min(all, std::max(most_of_small, plane_bytes(headers, few)));
}

// Lays out the planes, each with memory for `rows_of_mcus`. Returns their size in bytes.
std::size_t jpeg_image::lay_out(int rows_of_mcus) noexcept {
  std::size_t bytes = plane_padding;
  kept_rows_ = rows_of_mcus;
  for (std::size_t c = 0; c < static_cast<std::size_t>(headers_.count); ++c) {
    auto& plane = planes_[c];
    const auto width = static_cast<std::size_t>(columns_ * across(c) * sides_[c]);
    plane.stride = static_cast<std::ptrdiff_t>(stride_of(width));
    plane.rows = rows_of_mcus * down(c) * sides_[c];
    bytes += static_cast<std::size_t>(plane.rows) * static_cast<std::size_t>(plane.stride);
  }
  return bytes;
}

// Rows of MCUs that libjpeg decodes for the rows of pixels above `bottom`: with `strict`, damage in
// any of them is an error. Upsampling needs one more row of subsampled components.
int jpeg_image::mcu_rows_above(int bottom) const noexcept {
  const int more = headers_.down > 1 ? headers_.down : 0;
  const int rows = ceil_divide(bottom + more, mcu_height());
  return std::min(ceil_divide(rows, headers_.mcu_rows_per_group) * headers_.mcu_rows_per_group,
                  rows_);
}

// Upsampling needs one more sample on each side.
void jpeg_image::begin(const jpeg_part& part, int kept) {
  const int more_columns = headers_.across > 1 ? headers_.across : 0;
  const int more_rows = headers_.down > 1 ? headers_.down : 0;
  first_column_ = std::max(part.left - more_columns, 0) / mcu_width();
  end_column_ = std::min(ceil_divide(part.right + more_columns, mcu_width()), columns_);
  first_row_ = std::max(part.top - more_rows, 0) / mcu_height();
  end_row_ = mcu_rows_above(part.bottom);
  oldest_row_ = first_row_;
  kept_ = kept + more_rows;

  auto bytes = lay_out(end_row_ - first_row_);
  const int few = (kept_ + more_rows) / mcu_height() + 2 + headers_.mcu_rows_per_group;
  if (bytes > most_of_small && few < kept_rows_) bytes = lay_out(few);
  auto* next = samples_.reserve(bytes) + jpeg_kernels::row_padding;
  for (auto& plane : std::span(planes_).first(static_cast<std::size_t>(headers_.count))) {
    plane.first = next;
    next += plane.rows * plane.stride;
  }

  order_blocks();
  place_blocks();
  segment_ = 0;
  row_ = 0;
  stream_.damaged = false;
  stream_.overruns = 0;
  started_ = true;
  begin_segment();
  column_ = 0;
  begin_chunk();
}

void jpeg_image::begin_segment() noexcept {
  if (segment_ > 0) stream_.position = segment_ends_[segment_ - 1];
  stream_.predictions = {};
  until_restart_ = headers_.restart_interval;
}

void jpeg_image::begin_chunk() noexcept {
  chunk_ = std::min(jpeg_chunk, columns_ - column_);
  if (headers_.restart_interval > 0) chunk_ = std::min(chunk_, until_restart_);
  stream_.begin_chunk(chunk_ * headers_.blocks());
}

// Whether the segment is used up except for the padding bits of its last byte, as libjpeg requires.
bool jpeg_image::ends_segment() const noexcept {
  const auto end = segment_ends_[segment_];
  return stream_.position <= end && end - stream_.position < 8;
}

void jpeg_image::end_chunk() noexcept {
  stream_.end_chunk();
  damaged_ |=
      stream_.damaged || stream_.overruns != 0 || stream_.position > segment_ends_[segment_];
  if (damaged_) return;
  if (row_ >= first_row_) transform_chunk();
  column_ += chunk_;
  until_restart_ -= chunk_;
  if (column_ == columns_) {
    if (row_ >= first_row_) pad_rows();
    column_ = 0;
    ++row_;
  }
  const bool last = row_ == rows_;
  const bool restarts = headers_.restart_interval > 0 && until_restart_ == 0 && !last;
  if (last || restarts) damaged_ |= !ends_segment();
  if (last) damaged_ |= segment_ + 1 != segment_ends_.size();
  if (restarts) {
    damaged_ |= ++segment_ == segment_ends_.size();
    if (!damaged_) begin_segment();
  }
  if (!damaged_ && row_ < end_row_) begin_chunk();
}

void jpeg_image::transform_chunk() noexcept {
  if (column_ >= end_column_ || column_ + chunk_ <= first_column_) return;
  for (std::size_t c = 0; c < static_cast<std::size_t>(headers_.count); ++c) transform_component(c);
}

// Computes where the samples of each block of a chunk go.
void jpeg_image::place_blocks() noexcept {
  for (std::size_t c = 0; c < static_cast<std::size_t>(headers_.count); ++c) {
    const int of_mcu = across(c) * down(c), side = sides_[c];
    const int offset = c == 0 ? 0 : headers_.across * headers_.down + static_cast<int>(c) - 1;
    for (int i = 0; i < jpeg_chunk * of_mcu; ++i) {
      const int mcu = i / of_mcu, in_mcu = i % of_mcu, x = mcu * across(c) + in_mcu % across(c);
      auto& block = blocks_[c][static_cast<std::size_t>(i)];
      block.coefficients = stream_.block(mcu * headers_.blocks() + offset + in_mcu);
      block.samples = in_mcu / across(c) * side * planes_[c].stride + x * side;
    }
  }
}

static jpeg_transform transform_to(int side, const jpeg_kernels& kernels) noexcept {
  switch (side) {
    case 8: return kernels.transform;
    case 4: return kernels.transform_to_4;
    case 2: return kernels.transform_to_2;
    default: return transform_to_1;
  }
}

void jpeg_image::transform_component(std::size_t c) noexcept {
  std::array<const std::int16_t*, most_blocks> blocks;
  std::array<std::uint8_t*, most_blocks> out;
  const auto& plane = planes_[c];
  const int side = sides_[c];
  auto* const first =
      plane.first + row_ * side * down(c) % plane.rows * plane.stride + column_ * across(c) * side;
  const auto count = static_cast<std::size_t>(chunk_ * across(c) * down(c));
  for (std::size_t i = 0; i < count; ++i) {
    blocks[i] = blocks_[c][i].coefficients;
    out[i] = first + blocks_[c][i].samples;
  }
  const auto transform = transform_to(side, *kernels_);
  damaged_ |= !transform(blocks.data(), static_cast<int>(count),
                         headers_.components[c].quantisation.data(), out.data(), plane.stride);
}

// At the edges of the image, upsampling uses copies of the outermost samples as neighbours.
void jpeg_image::pad_rows() noexcept {
  for (std::size_t c = 1; c < static_cast<std::size_t>(headers_.count); ++c) {
    const int width = plane_width(c);
    for (int y = row_ * sides_[c]; y < (row_ + 1) * sides_[c]; ++y) {
      auto* const row = plane_row(c, y);
      row[-1] = row[0];
      row[width] = row[width - 1];
    }
  }
}

bool jpeg_image::decode(int y, jpeg_image* other) {
  const int end_row = std::min(mcu_rows_above(y + 1), end_row_);
  oldest_row_ = std::max(first_row_, (y + 1 - kept_) / mcu_height());
  while (row_ < end_row && !damaged_) {
    if (other != nullptr && other->decodes()) {
      const int complete = kernels_->entropy->two(stream_, other->stream_);
      (complete == 0 ? *this : *other).end_chunk();
    } else {
      kernels_->entropy->one(stream_);
      end_chunk();
    }
  }
  return !damaged_;
}

void jpeg_image::close() noexcept {
  started_ = false;
  damaged_ = false;
  scan_.end_image();
  samples_.end_image();
  dc_ = {};
  ac_ = {};
  headers_ = {};  // its views of the file end here
}

}  // namespace lade::media
